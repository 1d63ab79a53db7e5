-- MySQL dump 10.13  Distrib 9.7.4, for Linux (x86_64)
--
-- Host: localhost    Database: db-with-dash
-- ------------------------------------------------------
-- Server version	9.7.4-2

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!50503 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;
SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;
SET @@SESSION.SQL_LOG_BIN= 0;

--
-- GTID state at the beginning of the backup 
--

SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ 'f2455cee-e55d-11f1-807f-02fc00000001:1-4458';

--
-- Current Database: `db-with-dash`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `db-with-dash` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `db-with-dash`;

--
-- Table structure for table `T1`
--

DROP TABLE IF EXISTS `T1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `T1` (
  `a` int NOT NULL,
  PRIMARY KEY (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t1`
--

DROP TABLE IF EXISTS `t1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t1` (
  `a` int NOT NULL,
  PRIMARY KEY (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping routines for database 'db-with-dash'
--

--
-- Current Database: `tt_ddl`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `tt_ddl` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `tt_ddl`;

--
-- Table structure for table `a4`
--

DROP TABLE IF EXISTS `a4`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `a4` (
  `f` float DEFAULT NULL,
  `id` bigint unsigned NOT NULL,
  `vv` text,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `ck`
--

DROP TABLE IF EXISTS `ck`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `ck` (
  `a` int DEFAULT NULL,
  CONSTRAINT `ck_chk_1` CHECK ((`a` > 0))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `cmt`
--

DROP TABLE IF EXISTS `cmt`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `cmt` (
  `a` int DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `conv`
--

DROP TABLE IF EXISTS `conv`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `conv` (
  `id` int NOT NULL,
  `s` enum('é','?','n') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `ctas`
--

DROP TABLE IF EXISTS `ctas`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `ctas` (
  `a` bigint NOT NULL DEFAULT '0',
  `b` varchar(3) NOT NULL DEFAULT '',
  `c` decimal(10,2) NOT NULL DEFAULT '0.00',
  `d` datetime NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `l1`
--

DROP TABLE IF EXISTS `l1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `l1` (
  `s` varchar(10) DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `lk`
--

DROP TABLE IF EXISTS `lk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `lk` (
  `a` bigint NOT NULL DEFAULT '0',
  `c` decimal(10,2) NOT NULL DEFAULT '0.00',
  `d` datetime NOT NULL,
  `inst` int DEFAULT '3'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `r`
--

DROP TABLE IF EXISTS `r`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `r` (
  `x` varchar(5) NOT NULL,
  `y` int DEFAULT NULL,
  `id` int NOT NULL AUTO_INCREMENT,
  PRIMARY KEY (`id`),
  UNIQUE KEY `u2` (`y`,`x`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `vt`
--

DROP TABLE IF EXISTS `vt`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `vt` (
  `a` int DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Temporary view structure for view `vw`
--

DROP TABLE IF EXISTS `vw`;
/*!50001 DROP VIEW IF EXISTS `vw`*/;
SET @saved_cs_client     = @@character_set_client;
/*!50503 SET character_set_client = utf8mb4 */;
/*!50001 CREATE VIEW `vw` AS SELECT 
 1 AS `a`,
 1 AS `b`,
 1 AS `c`,
 1 AS `d`*/;
SET character_set_client = @saved_cs_client;

--
-- Dumping routines for database 'tt_ddl'
--

--
-- Current Database: `tt_gtid`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `tt_gtid` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `tt_gtid`;

--
-- Table structure for table `t`
--

DROP TABLE IF EXISTS `t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t` (
  `id` int NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping routines for database 'tt_gtid'
--

--
-- Current Database: `tt_img`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `tt_img` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `tt_img`;

--
-- Table structure for table `i_full`
--

DROP TABLE IF EXISTS `i_full`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_full` (
  `id` int NOT NULL,
  `a` int DEFAULT NULL,
  `b` varchar(20) DEFAULT NULL,
  `bl` blob,
  `tx` text,
  `n` int NOT NULL DEFAULT '3',
  PRIMARY KEY (`id`),
  UNIQUE KEY `ua` (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_full_g`
--

DROP TABLE IF EXISTS `i_full_g`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_full_g` (
  `id` int NOT NULL,
  `a` int DEFAULT NULL,
  `g` int GENERATED ALWAYS AS ((`a` + 1)) VIRTUAL,
  `s` int GENERATED ALWAYS AS ((`a` * 2)) STORED,
  `z` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_full_nopk`
--

DROP TABLE IF EXISTS `i_full_nopk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_full_nopk` (
  `a` int DEFAULT NULL,
  `bl` blob,
  `c` char(3) DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_full_uk`
--

DROP TABLE IF EXISTS `i_full_uk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_full_uk` (
  `a` int NOT NULL,
  `bl` blob,
  `c` char(3) DEFAULT NULL,
  UNIQUE KEY `a` (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_minimal`
--

DROP TABLE IF EXISTS `i_minimal`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_minimal` (
  `id` int NOT NULL,
  `a` int DEFAULT NULL,
  `b` varchar(20) DEFAULT NULL,
  `bl` blob,
  `tx` text,
  `n` int NOT NULL DEFAULT '3',
  PRIMARY KEY (`id`),
  UNIQUE KEY `ua` (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_minimal_g`
--

DROP TABLE IF EXISTS `i_minimal_g`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_minimal_g` (
  `id` int NOT NULL,
  `a` int DEFAULT NULL,
  `g` int GENERATED ALWAYS AS ((`a` + 1)) VIRTUAL,
  `s` int GENERATED ALWAYS AS ((`a` * 2)) STORED,
  `z` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_minimal_nopk`
--

DROP TABLE IF EXISTS `i_minimal_nopk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_minimal_nopk` (
  `a` int DEFAULT NULL,
  `bl` blob,
  `c` char(3) DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_minimal_uk`
--

DROP TABLE IF EXISTS `i_minimal_uk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_minimal_uk` (
  `a` int NOT NULL,
  `bl` blob,
  `c` char(3) DEFAULT NULL,
  UNIQUE KEY `a` (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_noblob`
--

DROP TABLE IF EXISTS `i_noblob`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_noblob` (
  `id` int NOT NULL,
  `a` int DEFAULT NULL,
  `b` varchar(20) DEFAULT NULL,
  `bl` blob,
  `tx` text,
  `n` int NOT NULL DEFAULT '3',
  PRIMARY KEY (`id`),
  UNIQUE KEY `ua` (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_noblob_g`
--

DROP TABLE IF EXISTS `i_noblob_g`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_noblob_g` (
  `id` int NOT NULL,
  `a` int DEFAULT NULL,
  `g` int GENERATED ALWAYS AS ((`a` + 1)) VIRTUAL,
  `s` int GENERATED ALWAYS AS ((`a` * 2)) STORED,
  `z` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_noblob_nopk`
--

DROP TABLE IF EXISTS `i_noblob_nopk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_noblob_nopk` (
  `a` int DEFAULT NULL,
  `bl` blob,
  `c` char(3) DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `i_noblob_uk`
--

DROP TABLE IF EXISTS `i_noblob_uk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `i_noblob_uk` (
  `a` int NOT NULL,
  `bl` blob,
  `c` char(3) DEFAULT NULL,
  UNIQUE KEY `a` (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping routines for database 'tt_img'
--

--
-- Current Database: `tt_json`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `tt_json` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `tt_json`;

--
-- Table structure for table `j`
--

DROP TABLE IF EXISTS `j`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `j` (
  `id` int NOT NULL,
  `d` json DEFAULT NULL,
  `e` json DEFAULT NULL,
  `n` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping routines for database 'tt_json'
--

--
-- Current Database: `tt_keys`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `tt_keys` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `tt_keys`;

--
-- Table structure for table `child`
--

DROP TABLE IF EXISTS `child`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `child` (
  `id` int NOT NULL,
  `pid` int DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `pid` (`pid`),
  CONSTRAINT `child_ibfk_1` FOREIGN KEY (`pid`) REFERENCES `parent` (`id`) ON DELETE CASCADE ON UPDATE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `child2`
--

DROP TABLE IF EXISTS `child2`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `child2` (
  `id` int NOT NULL,
  `pid` int DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `pid` (`pid`),
  CONSTRAINT `child2_ibfk_1` FOREIGN KEY (`pid`) REFERENCES `parent` (`id`) ON DELETE SET NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `comp`
--

DROP TABLE IF EXISTS `comp`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `comp` (
  `a` int NOT NULL,
  `b` varchar(10) NOT NULL,
  `c` date NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`b`,`a`,`c`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `fnidx`
--

DROP TABLE IF EXISTS `fnidx`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `fnidx` (
  `id` int NOT NULL,
  `j` json DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `functional_index` ((cast(json_extract(`j`,_utf8mb4'$.a') as unsigned)))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `gipk`
--

DROP TABLE IF EXISTS `gipk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `gipk` (
  `my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */,
  `a` int DEFAULT NULL,
  `b` int DEFAULT NULL,
  PRIMARY KEY (`my_row_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `mvi`
--

DROP TABLE IF EXISTS `mvi`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `mvi` (
  `id` int NOT NULL,
  `j` json DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `functional_index` ((cast(json_extract(`j`,_utf8mb4'$.t') as unsigned array)))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `nopk`
--

DROP TABLE IF EXISTS `nopk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `nopk` (
  `a` int DEFAULT NULL,
  `b` varchar(20) DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `nopk_float`
--

DROP TABLE IF EXISTS `nopk_float`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `nopk_float` (
  `f` float DEFAULT NULL,
  `d` double DEFAULT NULL,
  `t` text,
  `bl` blob
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `odku`
--

DROP TABLE IF EXISTS `odku`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `odku` (
  `id` int NOT NULL AUTO_INCREMENT,
  `k` int DEFAULT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `k` (`k`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `parent`
--

DROP TABLE IF EXISTS `parent`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `parent` (
  `id` int NOT NULL,
  `n` varchar(10) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `part`
--

DROP TABLE IF EXISTS `part`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `part` (
  `id` int NOT NULL,
  `y` int NOT NULL,
  `v` varchar(10) DEFAULT NULL,
  PRIMARY KEY (`id`,`y`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci
/*!50100 PARTITION BY RANGE (`y`)
(PARTITION p0 VALUES LESS THAN (2000) ENGINE = InnoDB,
 PARTITION p1 VALUES LESS THAN (2010) ENGINE = InnoDB,
 PARTITION p2 VALUES LESS THAN MAXVALUE ENGINE = InnoDB) */;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `pkbig`
--

DROP TABLE IF EXISTS `pkbig`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `pkbig` (
  `k` bigint unsigned NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`k`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `pkbin`
--

DROP TABLE IF EXISTS `pkbin`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `pkbin` (
  `k` varbinary(20) NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`k`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `pkci`
--

DROP TABLE IF EXISTS `pkci`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `pkci` (
  `k` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`k`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `pkdec`
--

DROP TABLE IF EXISTS `pkdec`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `pkdec` (
  `k` decimal(30,10) NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`k`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `pkdt`
--

DROP TABLE IF EXISTS `pkdt`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `pkdt` (
  `k` datetime(3) NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`k`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `pkenum`
--

DROP TABLE IF EXISTS `pkenum`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `pkenum` (
  `e` enum('z','a','m') NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`e`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `pkpad`
--

DROP TABLE IF EXISTS `pkpad`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `pkpad` (
  `k` char(10) NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`k`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `pkprefix`
--

DROP TABLE IF EXISTS `pkprefix`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `pkprefix` (
  `t` text NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`t`(10))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `swp`
--

DROP TABLE IF EXISTS `swp`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `swp` (
  `id` int NOT NULL,
  `u` int DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `u` (`u`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `trg`
--

DROP TABLE IF EXISTS `trg`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `trg` (
  `id` int NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_0900_ai_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `trg_ai` AFTER INSERT ON `trg` FOR EACH ROW INSERT INTO trg_log(what,id,nv) VALUES('ins',NEW.id,NEW.v) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_0900_ai_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `trg_au` AFTER UPDATE ON `trg` FOR EACH ROW INSERT INTO trg_log(what,id,ov,nv) VALUES('upd',NEW.id,OLD.v,NEW.v) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_0900_ai_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `trg_bd` BEFORE DELETE ON `trg` FOR EACH ROW INSERT INTO trg_log(what,id,ov) VALUES('del',OLD.id,OLD.v) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;

--
-- Table structure for table `trg_log`
--

DROP TABLE IF EXISTS `trg_log`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `trg_log` (
  `n` int NOT NULL AUTO_INCREMENT,
  `what` varchar(20) DEFAULT NULL,
  `id` int DEFAULT NULL,
  `ov` int DEFAULT NULL,
  `nv` int DEFAULT NULL,
  PRIMARY KEY (`n`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `uniq_nn`
--

DROP TABLE IF EXISTS `uniq_nn`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `uniq_nn` (
  `a` int NOT NULL,
  `b` int NOT NULL,
  `c` int DEFAULT NULL,
  UNIQUE KEY `k` (`b`,`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `uniq_null`
--

DROP TABLE IF EXISTS `uniq_null`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `uniq_null` (
  `a` int DEFAULT NULL,
  `b` int DEFAULT NULL,
  UNIQUE KEY `a` (`a`,`b`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `we``ird na.me ✓`
--

DROP TABLE IF EXISTS `we``ird na.me ✓`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `we``ird na.me ✓` (
  `se lect` int NOT NULL,
  `ключ` varchar(10) DEFAULT NULL,
  `a'b"c` int DEFAULT NULL,
  PRIMARY KEY (`se lect`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping routines for database 'tt_keys'
--

--
-- Current Database: `tt_trx`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `tt_trx` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `tt_trx`;

--
-- Table structure for table `implicit_commit`
--

DROP TABLE IF EXISTS `implicit_commit`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `implicit_commit` (
  `a` int DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `m`
--

DROP TABLE IF EXISTS `m`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `m` (
  `id` int NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=MyISAM DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t`
--

DROP TABLE IF EXISTS `t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t` (
  `id` int NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t2`
--

DROP TABLE IF EXISTS `t2`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t2` (
  `id` int NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping routines for database 'tt_trx'
--

--
-- Current Database: `tt_types`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `tt_types` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `tt_types`;

--
-- Table structure for table `t_bigint`
--

DROP TABLE IF EXISTS `t_bigint`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bigint` (
  `id` int NOT NULL,
  `v` bigint DEFAULT NULL,
  `w` bigint DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bigint_u`
--

DROP TABLE IF EXISTS `t_bigint_u`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bigint_u` (
  `id` int NOT NULL,
  `v` bigint unsigned DEFAULT NULL,
  `w` bigint unsigned DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bigint_z`
--

DROP TABLE IF EXISTS `t_bigint_z`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bigint_z` (
  `id` int NOT NULL,
  `v` bigint(5) unsigned zerofill DEFAULT NULL,
  `w` bigint(5) unsigned zerofill DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_binary_1`
--

DROP TABLE IF EXISTS `t_binary_1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_binary_1` (
  `id` int NOT NULL,
  `v` binary(1) DEFAULT NULL,
  `w` binary(1) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_binary_16`
--

DROP TABLE IF EXISTS `t_binary_16`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_binary_16` (
  `id` int NOT NULL,
  `v` binary(16) DEFAULT NULL,
  `w` binary(16) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_binary_255`
--

DROP TABLE IF EXISTS `t_binary_255`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_binary_255` (
  `id` int NOT NULL,
  `v` binary(255) DEFAULT NULL,
  `w` binary(255) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_1`
--

DROP TABLE IF EXISTS `t_bit_1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_1` (
  `id` int NOT NULL,
  `v` bit(1) DEFAULT NULL,
  `w` bit(1) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_15`
--

DROP TABLE IF EXISTS `t_bit_15`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_15` (
  `id` int NOT NULL,
  `v` bit(15) DEFAULT NULL,
  `w` bit(15) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_16`
--

DROP TABLE IF EXISTS `t_bit_16`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_16` (
  `id` int NOT NULL,
  `v` bit(16) DEFAULT NULL,
  `w` bit(16) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_17`
--

DROP TABLE IF EXISTS `t_bit_17`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_17` (
  `id` int NOT NULL,
  `v` bit(17) DEFAULT NULL,
  `w` bit(17) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_31`
--

DROP TABLE IF EXISTS `t_bit_31`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_31` (
  `id` int NOT NULL,
  `v` bit(31) DEFAULT NULL,
  `w` bit(31) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_32`
--

DROP TABLE IF EXISTS `t_bit_32`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_32` (
  `id` int NOT NULL,
  `v` bit(32) DEFAULT NULL,
  `w` bit(32) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_33`
--

DROP TABLE IF EXISTS `t_bit_33`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_33` (
  `id` int NOT NULL,
  `v` bit(33) DEFAULT NULL,
  `w` bit(33) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_5`
--

DROP TABLE IF EXISTS `t_bit_5`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_5` (
  `id` int NOT NULL,
  `v` bit(5) DEFAULT NULL,
  `w` bit(5) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_63`
--

DROP TABLE IF EXISTS `t_bit_63`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_63` (
  `id` int NOT NULL,
  `v` bit(63) DEFAULT NULL,
  `w` bit(63) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_64`
--

DROP TABLE IF EXISTS `t_bit_64`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_64` (
  `id` int NOT NULL,
  `v` bit(64) DEFAULT NULL,
  `w` bit(64) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_7`
--

DROP TABLE IF EXISTS `t_bit_7`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_7` (
  `id` int NOT NULL,
  `v` bit(7) DEFAULT NULL,
  `w` bit(7) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_8`
--

DROP TABLE IF EXISTS `t_bit_8`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_8` (
  `id` int NOT NULL,
  `v` bit(8) DEFAULT NULL,
  `w` bit(8) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_bit_9`
--

DROP TABLE IF EXISTS `t_bit_9`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_bit_9` (
  `id` int NOT NULL,
  `v` bit(9) DEFAULT NULL,
  `w` bit(9) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_blob`
--

DROP TABLE IF EXISTS `t_blob`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_blob` (
  `id` int NOT NULL,
  `v` blob,
  `w` blob,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_boolean`
--

DROP TABLE IF EXISTS `t_boolean`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_boolean` (
  `id` int NOT NULL,
  `v` tinyint(1) DEFAULT NULL,
  `w` tinyint(1) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_char_1`
--

DROP TABLE IF EXISTS `t_char_1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_char_1` (
  `id` int NOT NULL,
  `v` char(1) DEFAULT NULL,
  `w` char(1) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_char_255`
--

DROP TABLE IF EXISTS `t_char_255`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_char_255` (
  `id` int NOT NULL,
  `v` char(255) DEFAULT NULL,
  `w` char(255) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_char_u3`
--

DROP TABLE IF EXISTS `t_char_u3`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_char_u3` (
  `id` int NOT NULL,
  `v` char(100) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT NULL,
  `w` char(100) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_armscii8_c`
--

DROP TABLE IF EXISTS `t_cs_armscii8_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_armscii8_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET armscii8 COLLATE armscii8_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET armscii8 COLLATE armscii8_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_armscii8_t`
--

DROP TABLE IF EXISTS `t_cs_armscii8_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_armscii8_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET armscii8 COLLATE armscii8_general_ci,
  `w` text CHARACTER SET armscii8 COLLATE armscii8_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_armscii8_vc`
--

DROP TABLE IF EXISTS `t_cs_armscii8_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_armscii8_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET armscii8 COLLATE armscii8_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET armscii8 COLLATE armscii8_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_ascii_c`
--

DROP TABLE IF EXISTS `t_cs_ascii_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_ascii_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET ascii COLLATE ascii_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET ascii COLLATE ascii_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_ascii_t`
--

DROP TABLE IF EXISTS `t_cs_ascii_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_ascii_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET ascii COLLATE ascii_general_ci,
  `w` text CHARACTER SET ascii COLLATE ascii_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_ascii_vc`
--

DROP TABLE IF EXISTS `t_cs_ascii_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_ascii_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET ascii COLLATE ascii_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET ascii COLLATE ascii_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_big5_c`
--

DROP TABLE IF EXISTS `t_cs_big5_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_big5_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET big5 COLLATE big5_chinese_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET big5 COLLATE big5_chinese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_big5_t`
--

DROP TABLE IF EXISTS `t_cs_big5_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_big5_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET big5 COLLATE big5_chinese_ci,
  `w` text CHARACTER SET big5 COLLATE big5_chinese_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_big5_vc`
--

DROP TABLE IF EXISTS `t_cs_big5_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_big5_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET big5 COLLATE big5_chinese_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET big5 COLLATE big5_chinese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_binary_c`
--

DROP TABLE IF EXISTS `t_cs_binary_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_binary_c` (
  `id` int NOT NULL,
  `v` binary(20) DEFAULT NULL,
  `w` binary(20) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_binary_vc`
--

DROP TABLE IF EXISTS `t_cs_binary_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_binary_vc` (
  `id` int NOT NULL,
  `v` varbinary(40) DEFAULT NULL,
  `w` varbinary(40) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_cp1251_c`
--

DROP TABLE IF EXISTS `t_cs_cp1251_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_cp1251_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET cp1251 COLLATE cp1251_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET cp1251 COLLATE cp1251_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_cp1251_t`
--

DROP TABLE IF EXISTS `t_cs_cp1251_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_cp1251_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET cp1251 COLLATE cp1251_general_ci,
  `w` text CHARACTER SET cp1251 COLLATE cp1251_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_cp1251_vc`
--

DROP TABLE IF EXISTS `t_cs_cp1251_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_cp1251_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET cp1251 COLLATE cp1251_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET cp1251 COLLATE cp1251_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_cp866_c`
--

DROP TABLE IF EXISTS `t_cs_cp866_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_cp866_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET cp866 COLLATE cp866_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET cp866 COLLATE cp866_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_cp866_t`
--

DROP TABLE IF EXISTS `t_cs_cp866_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_cp866_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET cp866 COLLATE cp866_general_ci,
  `w` text CHARACTER SET cp866 COLLATE cp866_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_cp866_vc`
--

DROP TABLE IF EXISTS `t_cs_cp866_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_cp866_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET cp866 COLLATE cp866_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET cp866 COLLATE cp866_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_cp932_c`
--

DROP TABLE IF EXISTS `t_cs_cp932_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_cp932_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET cp932 COLLATE cp932_japanese_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET cp932 COLLATE cp932_japanese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_cp932_t`
--

DROP TABLE IF EXISTS `t_cs_cp932_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_cp932_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET cp932 COLLATE cp932_japanese_ci,
  `w` text CHARACTER SET cp932 COLLATE cp932_japanese_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_cp932_vc`
--

DROP TABLE IF EXISTS `t_cs_cp932_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_cp932_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET cp932 COLLATE cp932_japanese_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET cp932 COLLATE cp932_japanese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_dec8_c`
--

DROP TABLE IF EXISTS `t_cs_dec8_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_dec8_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET dec8 COLLATE dec8_swedish_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET dec8 COLLATE dec8_swedish_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_dec8_t`
--

DROP TABLE IF EXISTS `t_cs_dec8_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_dec8_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET dec8 COLLATE dec8_swedish_ci,
  `w` text CHARACTER SET dec8 COLLATE dec8_swedish_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_dec8_vc`
--

DROP TABLE IF EXISTS `t_cs_dec8_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_dec8_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET dec8 COLLATE dec8_swedish_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET dec8 COLLATE dec8_swedish_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_euckr_c`
--

DROP TABLE IF EXISTS `t_cs_euckr_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_euckr_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET euckr COLLATE euckr_korean_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET euckr COLLATE euckr_korean_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_euckr_t`
--

DROP TABLE IF EXISTS `t_cs_euckr_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_euckr_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET euckr COLLATE euckr_korean_ci,
  `w` text CHARACTER SET euckr COLLATE euckr_korean_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_euckr_vc`
--

DROP TABLE IF EXISTS `t_cs_euckr_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_euckr_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET euckr COLLATE euckr_korean_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET euckr COLLATE euckr_korean_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_gb18030_c`
--

DROP TABLE IF EXISTS `t_cs_gb18030_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_gb18030_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET gb18030 COLLATE gb18030_chinese_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET gb18030 COLLATE gb18030_chinese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_gb18030_t`
--

DROP TABLE IF EXISTS `t_cs_gb18030_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_gb18030_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET gb18030 COLLATE gb18030_chinese_ci,
  `w` text CHARACTER SET gb18030 COLLATE gb18030_chinese_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_gb18030_vc`
--

DROP TABLE IF EXISTS `t_cs_gb18030_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_gb18030_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET gb18030 COLLATE gb18030_chinese_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET gb18030 COLLATE gb18030_chinese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_gbk_c`
--

DROP TABLE IF EXISTS `t_cs_gbk_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_gbk_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET gbk COLLATE gbk_chinese_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET gbk COLLATE gbk_chinese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_gbk_t`
--

DROP TABLE IF EXISTS `t_cs_gbk_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_gbk_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET gbk COLLATE gbk_chinese_ci,
  `w` text CHARACTER SET gbk COLLATE gbk_chinese_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_gbk_vc`
--

DROP TABLE IF EXISTS `t_cs_gbk_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_gbk_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET gbk COLLATE gbk_chinese_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET gbk COLLATE gbk_chinese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_geostd8_c`
--

DROP TABLE IF EXISTS `t_cs_geostd8_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_geostd8_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET geostd8 COLLATE geostd8_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET geostd8 COLLATE geostd8_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_geostd8_t`
--

DROP TABLE IF EXISTS `t_cs_geostd8_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_geostd8_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET geostd8 COLLATE geostd8_general_ci,
  `w` text CHARACTER SET geostd8 COLLATE geostd8_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_geostd8_vc`
--

DROP TABLE IF EXISTS `t_cs_geostd8_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_geostd8_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET geostd8 COLLATE geostd8_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET geostd8 COLLATE geostd8_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_greek_c`
--

DROP TABLE IF EXISTS `t_cs_greek_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_greek_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET greek COLLATE greek_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET greek COLLATE greek_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_greek_t`
--

DROP TABLE IF EXISTS `t_cs_greek_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_greek_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET greek COLLATE greek_general_ci,
  `w` text CHARACTER SET greek COLLATE greek_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_greek_vc`
--

DROP TABLE IF EXISTS `t_cs_greek_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_greek_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET greek COLLATE greek_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET greek COLLATE greek_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_hebrew_c`
--

DROP TABLE IF EXISTS `t_cs_hebrew_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_hebrew_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET hebrew COLLATE hebrew_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET hebrew COLLATE hebrew_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_hebrew_t`
--

DROP TABLE IF EXISTS `t_cs_hebrew_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_hebrew_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET hebrew COLLATE hebrew_general_ci,
  `w` text CHARACTER SET hebrew COLLATE hebrew_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_hebrew_vc`
--

DROP TABLE IF EXISTS `t_cs_hebrew_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_hebrew_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET hebrew COLLATE hebrew_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET hebrew COLLATE hebrew_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_hp8_c`
--

DROP TABLE IF EXISTS `t_cs_hp8_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_hp8_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET hp8 COLLATE hp8_english_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET hp8 COLLATE hp8_english_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_hp8_t`
--

DROP TABLE IF EXISTS `t_cs_hp8_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_hp8_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET hp8 COLLATE hp8_english_ci,
  `w` text CHARACTER SET hp8 COLLATE hp8_english_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_hp8_vc`
--

DROP TABLE IF EXISTS `t_cs_hp8_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_hp8_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET hp8 COLLATE hp8_english_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET hp8 COLLATE hp8_english_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_koi8r_c`
--

DROP TABLE IF EXISTS `t_cs_koi8r_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_koi8r_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET koi8r COLLATE koi8r_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET koi8r COLLATE koi8r_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_koi8r_t`
--

DROP TABLE IF EXISTS `t_cs_koi8r_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_koi8r_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET koi8r COLLATE koi8r_general_ci,
  `w` text CHARACTER SET koi8r COLLATE koi8r_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_koi8r_vc`
--

DROP TABLE IF EXISTS `t_cs_koi8r_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_koi8r_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET koi8r COLLATE koi8r_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET koi8r COLLATE koi8r_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_latin1_c`
--

DROP TABLE IF EXISTS `t_cs_latin1_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_latin1_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_latin1_t`
--

DROP TABLE IF EXISTS `t_cs_latin1_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_latin1_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET latin1 COLLATE latin1_swedish_ci,
  `w` text CHARACTER SET latin1 COLLATE latin1_swedish_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_latin1_vc`
--

DROP TABLE IF EXISTS `t_cs_latin1_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_latin1_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_latin2_c`
--

DROP TABLE IF EXISTS `t_cs_latin2_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_latin2_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET latin2 COLLATE latin2_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET latin2 COLLATE latin2_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_latin2_t`
--

DROP TABLE IF EXISTS `t_cs_latin2_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_latin2_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET latin2 COLLATE latin2_general_ci,
  `w` text CHARACTER SET latin2 COLLATE latin2_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_latin2_vc`
--

DROP TABLE IF EXISTS `t_cs_latin2_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_latin2_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET latin2 COLLATE latin2_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET latin2 COLLATE latin2_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_macroman_c`
--

DROP TABLE IF EXISTS `t_cs_macroman_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_macroman_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET macroman COLLATE macroman_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET macroman COLLATE macroman_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_macroman_t`
--

DROP TABLE IF EXISTS `t_cs_macroman_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_macroman_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET macroman COLLATE macroman_general_ci,
  `w` text CHARACTER SET macroman COLLATE macroman_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_macroman_vc`
--

DROP TABLE IF EXISTS `t_cs_macroman_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_macroman_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET macroman COLLATE macroman_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET macroman COLLATE macroman_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_sjis_c`
--

DROP TABLE IF EXISTS `t_cs_sjis_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_sjis_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET sjis COLLATE sjis_japanese_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET sjis COLLATE sjis_japanese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_sjis_t`
--

DROP TABLE IF EXISTS `t_cs_sjis_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_sjis_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET sjis COLLATE sjis_japanese_ci,
  `w` text CHARACTER SET sjis COLLATE sjis_japanese_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_sjis_vc`
--

DROP TABLE IF EXISTS `t_cs_sjis_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_sjis_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET sjis COLLATE sjis_japanese_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET sjis COLLATE sjis_japanese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_swe7_c`
--

DROP TABLE IF EXISTS `t_cs_swe7_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_swe7_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET swe7 COLLATE swe7_swedish_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET swe7 COLLATE swe7_swedish_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_swe7_t`
--

DROP TABLE IF EXISTS `t_cs_swe7_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_swe7_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET swe7 COLLATE swe7_swedish_ci,
  `w` text CHARACTER SET swe7 COLLATE swe7_swedish_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_swe7_vc`
--

DROP TABLE IF EXISTS `t_cs_swe7_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_swe7_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET swe7 COLLATE swe7_swedish_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET swe7 COLLATE swe7_swedish_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_tis620_c`
--

DROP TABLE IF EXISTS `t_cs_tis620_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_tis620_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET tis620 COLLATE tis620_thai_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET tis620 COLLATE tis620_thai_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_tis620_t`
--

DROP TABLE IF EXISTS `t_cs_tis620_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_tis620_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET tis620 COLLATE tis620_thai_ci,
  `w` text CHARACTER SET tis620 COLLATE tis620_thai_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_tis620_vc`
--

DROP TABLE IF EXISTS `t_cs_tis620_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_tis620_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET tis620 COLLATE tis620_thai_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET tis620 COLLATE tis620_thai_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_ucs2_c`
--

DROP TABLE IF EXISTS `t_cs_ucs2_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_ucs2_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET ucs2 COLLATE ucs2_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET ucs2 COLLATE ucs2_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_ucs2_t`
--

DROP TABLE IF EXISTS `t_cs_ucs2_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_ucs2_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET ucs2 COLLATE ucs2_general_ci,
  `w` text CHARACTER SET ucs2 COLLATE ucs2_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_ucs2_vc`
--

DROP TABLE IF EXISTS `t_cs_ucs2_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_ucs2_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET ucs2 COLLATE ucs2_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET ucs2 COLLATE ucs2_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_ujis_c`
--

DROP TABLE IF EXISTS `t_cs_ujis_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_ujis_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET ujis COLLATE ujis_japanese_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET ujis COLLATE ujis_japanese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_ujis_t`
--

DROP TABLE IF EXISTS `t_cs_ujis_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_ujis_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET ujis COLLATE ujis_japanese_ci,
  `w` text CHARACTER SET ujis COLLATE ujis_japanese_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_ujis_vc`
--

DROP TABLE IF EXISTS `t_cs_ujis_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_ujis_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET ujis COLLATE ujis_japanese_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET ujis COLLATE ujis_japanese_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf16_c`
--

DROP TABLE IF EXISTS `t_cs_utf16_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf16_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET utf16 COLLATE utf16_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET utf16 COLLATE utf16_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf16_t`
--

DROP TABLE IF EXISTS `t_cs_utf16_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf16_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET utf16 COLLATE utf16_general_ci,
  `w` text CHARACTER SET utf16 COLLATE utf16_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf16_vc`
--

DROP TABLE IF EXISTS `t_cs_utf16_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf16_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET utf16 COLLATE utf16_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET utf16 COLLATE utf16_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf16le_c`
--

DROP TABLE IF EXISTS `t_cs_utf16le_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf16le_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET utf16le COLLATE utf16le_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET utf16le COLLATE utf16le_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf16le_t`
--

DROP TABLE IF EXISTS `t_cs_utf16le_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf16le_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET utf16le COLLATE utf16le_general_ci,
  `w` text CHARACTER SET utf16le COLLATE utf16le_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf16le_vc`
--

DROP TABLE IF EXISTS `t_cs_utf16le_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf16le_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET utf16le COLLATE utf16le_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET utf16le COLLATE utf16le_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf32_c`
--

DROP TABLE IF EXISTS `t_cs_utf32_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf32_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET utf32 COLLATE utf32_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET utf32 COLLATE utf32_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf32_t`
--

DROP TABLE IF EXISTS `t_cs_utf32_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf32_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET utf32 COLLATE utf32_general_ci,
  `w` text CHARACTER SET utf32 COLLATE utf32_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf32_vc`
--

DROP TABLE IF EXISTS `t_cs_utf32_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf32_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET utf32 COLLATE utf32_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET utf32 COLLATE utf32_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf8mb3_c`
--

DROP TABLE IF EXISTS `t_cs_utf8mb3_c`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf8mb3_c` (
  `id` int NOT NULL,
  `v` char(20) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT NULL,
  `w` char(20) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf8mb3_t`
--

DROP TABLE IF EXISTS `t_cs_utf8mb3_t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf8mb3_t` (
  `id` int NOT NULL,
  `v` text CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci,
  `w` text CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_cs_utf8mb3_vc`
--

DROP TABLE IF EXISTS `t_cs_utf8mb3_vc`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_cs_utf8mb3_vc` (
  `id` int NOT NULL,
  `v` varchar(40) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT NULL,
  `w` varchar(40) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_date`
--

DROP TABLE IF EXISTS `t_date`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_date` (
  `id` int NOT NULL,
  `v` date DEFAULT NULL,
  `w` date DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_datetime_0`
--

DROP TABLE IF EXISTS `t_datetime_0`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_datetime_0` (
  `id` int NOT NULL,
  `v` datetime DEFAULT NULL,
  `w` datetime DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_datetime_1`
--

DROP TABLE IF EXISTS `t_datetime_1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_datetime_1` (
  `id` int NOT NULL,
  `v` datetime(1) DEFAULT NULL,
  `w` datetime(1) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_datetime_2`
--

DROP TABLE IF EXISTS `t_datetime_2`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_datetime_2` (
  `id` int NOT NULL,
  `v` datetime(2) DEFAULT NULL,
  `w` datetime(2) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_datetime_3`
--

DROP TABLE IF EXISTS `t_datetime_3`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_datetime_3` (
  `id` int NOT NULL,
  `v` datetime(3) DEFAULT NULL,
  `w` datetime(3) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_datetime_4`
--

DROP TABLE IF EXISTS `t_datetime_4`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_datetime_4` (
  `id` int NOT NULL,
  `v` datetime(4) DEFAULT NULL,
  `w` datetime(4) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_datetime_5`
--

DROP TABLE IF EXISTS `t_datetime_5`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_datetime_5` (
  `id` int NOT NULL,
  `v` datetime(5) DEFAULT NULL,
  `w` datetime(5) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_datetime_6`
--

DROP TABLE IF EXISTS `t_datetime_6`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_datetime_6` (
  `id` int NOT NULL,
  `v` datetime(6) DEFAULT NULL,
  `w` datetime(6) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_10_0`
--

DROP TABLE IF EXISTS `t_dec_10_0`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_10_0` (
  `id` int NOT NULL,
  `v` decimal(10,0) DEFAULT NULL,
  `w` decimal(10,0) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_10_3`
--

DROP TABLE IF EXISTS `t_dec_10_3`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_10_3` (
  `id` int NOT NULL,
  `v` decimal(10,3) DEFAULT NULL,
  `w` decimal(10,3) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_18_9`
--

DROP TABLE IF EXISTS `t_dec_18_9`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_18_9` (
  `id` int NOT NULL,
  `v` decimal(18,9) DEFAULT NULL,
  `w` decimal(18,9) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_1_0`
--

DROP TABLE IF EXISTS `t_dec_1_0`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_1_0` (
  `id` int NOT NULL,
  `v` decimal(1,0) DEFAULT NULL,
  `w` decimal(1,0) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_20_10`
--

DROP TABLE IF EXISTS `t_dec_20_10`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_20_10` (
  `id` int NOT NULL,
  `v` decimal(20,10) DEFAULT NULL,
  `w` decimal(20,10) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_30_30`
--

DROP TABLE IF EXISTS `t_dec_30_30`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_30_30` (
  `id` int NOT NULL,
  `v` decimal(30,30) DEFAULT NULL,
  `w` decimal(30,30) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_38_10`
--

DROP TABLE IF EXISTS `t_dec_38_10`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_38_10` (
  `id` int NOT NULL,
  `v` decimal(38,10) DEFAULT NULL,
  `w` decimal(38,10) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_5_2`
--

DROP TABLE IF EXISTS `t_dec_5_2`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_5_2` (
  `id` int NOT NULL,
  `v` decimal(5,2) DEFAULT NULL,
  `w` decimal(5,2) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_65_0`
--

DROP TABLE IF EXISTS `t_dec_65_0`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_65_0` (
  `id` int NOT NULL,
  `v` decimal(65,0) DEFAULT NULL,
  `w` decimal(65,0) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_65_29`
--

DROP TABLE IF EXISTS `t_dec_65_29`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_65_29` (
  `id` int NOT NULL,
  `v` decimal(65,29) DEFAULT NULL,
  `w` decimal(65,29) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_65_30`
--

DROP TABLE IF EXISTS `t_dec_65_30`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_65_30` (
  `id` int NOT NULL,
  `v` decimal(65,30) DEFAULT NULL,
  `w` decimal(65,30) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_9_9`
--

DROP TABLE IF EXISTS `t_dec_9_9`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_9_9` (
  `id` int NOT NULL,
  `v` decimal(9,9) DEFAULT NULL,
  `w` decimal(9,9) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_dec_u`
--

DROP TABLE IF EXISTS `t_dec_u`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_dec_u` (
  `id` int NOT NULL,
  `v` decimal(12,4) unsigned DEFAULT NULL,
  `w` decimal(12,4) unsigned DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_double`
--

DROP TABLE IF EXISTS `t_double`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_double` (
  `id` int NOT NULL,
  `v` double DEFAULT NULL,
  `w` double DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_double_20_8`
--

DROP TABLE IF EXISTS `t_double_20_8`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_double_20_8` (
  `id` int NOT NULL,
  `v` double(20,8) DEFAULT NULL,
  `w` double(20,8) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_enum_300`
--

DROP TABLE IF EXISTS `t_enum_300`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_enum_300` (
  `id` int NOT NULL,
  `v` enum('v0','v1','v2','v3','v4','v5','v6','v7','v8','v9','v10','v11','v12','v13','v14','v15','v16','v17','v18','v19','v20','v21','v22','v23','v24','v25','v26','v27','v28','v29','v30','v31','v32','v33','v34','v35','v36','v37','v38','v39','v40','v41','v42','v43','v44','v45','v46','v47','v48','v49','v50','v51','v52','v53','v54','v55','v56','v57','v58','v59','v60','v61','v62','v63','v64','v65','v66','v67','v68','v69','v70','v71','v72','v73','v74','v75','v76','v77','v78','v79','v80','v81','v82','v83','v84','v85','v86','v87','v88','v89','v90','v91','v92','v93','v94','v95','v96','v97','v98','v99','v100','v101','v102','v103','v104','v105','v106','v107','v108','v109','v110','v111','v112','v113','v114','v115','v116','v117','v118','v119','v120','v121','v122','v123','v124','v125','v126','v127','v128','v129','v130','v131','v132','v133','v134','v135','v136','v137','v138','v139','v140','v141','v142','v143','v144','v145','v146','v147','v148','v149','v150','v151','v152','v153','v154','v155','v156','v157','v158','v159','v160','v161','v162','v163','v164','v165','v166','v167','v168','v169','v170','v171','v172','v173','v174','v175','v176','v177','v178','v179','v180','v181','v182','v183','v184','v185','v186','v187','v188','v189','v190','v191','v192','v193','v194','v195','v196','v197','v198','v199','v200','v201','v202','v203','v204','v205','v206','v207','v208','v209','v210','v211','v212','v213','v214','v215','v216','v217','v218','v219','v220','v221','v222','v223','v224','v225','v226','v227','v228','v229','v230','v231','v232','v233','v234','v235','v236','v237','v238','v239','v240','v241','v242','v243','v244','v245','v246','v247','v248','v249','v250','v251','v252','v253','v254','v255','v256','v257','v258','v259','v260','v261','v262','v263','v264','v265','v266','v267','v268','v269','v270','v271','v272','v273','v274','v275','v276','v277','v278','v279','v280','v281','v282','v283','v284','v285','v286','v287','v288','v289','v290','v291','v292','v293','v294','v295','v296','v297','v298','v299') DEFAULT NULL,
  `w` enum('v0','v1','v2','v3','v4','v5','v6','v7','v8','v9','v10','v11','v12','v13','v14','v15','v16','v17','v18','v19','v20','v21','v22','v23','v24','v25','v26','v27','v28','v29','v30','v31','v32','v33','v34','v35','v36','v37','v38','v39','v40','v41','v42','v43','v44','v45','v46','v47','v48','v49','v50','v51','v52','v53','v54','v55','v56','v57','v58','v59','v60','v61','v62','v63','v64','v65','v66','v67','v68','v69','v70','v71','v72','v73','v74','v75','v76','v77','v78','v79','v80','v81','v82','v83','v84','v85','v86','v87','v88','v89','v90','v91','v92','v93','v94','v95','v96','v97','v98','v99','v100','v101','v102','v103','v104','v105','v106','v107','v108','v109','v110','v111','v112','v113','v114','v115','v116','v117','v118','v119','v120','v121','v122','v123','v124','v125','v126','v127','v128','v129','v130','v131','v132','v133','v134','v135','v136','v137','v138','v139','v140','v141','v142','v143','v144','v145','v146','v147','v148','v149','v150','v151','v152','v153','v154','v155','v156','v157','v158','v159','v160','v161','v162','v163','v164','v165','v166','v167','v168','v169','v170','v171','v172','v173','v174','v175','v176','v177','v178','v179','v180','v181','v182','v183','v184','v185','v186','v187','v188','v189','v190','v191','v192','v193','v194','v195','v196','v197','v198','v199','v200','v201','v202','v203','v204','v205','v206','v207','v208','v209','v210','v211','v212','v213','v214','v215','v216','v217','v218','v219','v220','v221','v222','v223','v224','v225','v226','v227','v228','v229','v230','v231','v232','v233','v234','v235','v236','v237','v238','v239','v240','v241','v242','v243','v244','v245','v246','v247','v248','v249','v250','v251','v252','v253','v254','v255','v256','v257','v258','v259','v260','v261','v262','v263','v264','v265','v266','v267','v268','v269','v270','v271','v272','v273','v274','v275','v276','v277','v278','v279','v280','v281','v282','v283','v284','v285','v286','v287','v288','v289','v290','v291','v292','v293','v294','v295','v296','v297','v298','v299') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_enum_s`
--

DROP TABLE IF EXISTS `t_enum_s`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_enum_s` (
  `id` int NOT NULL,
  `v` enum('a','b','it''s','ü','NULL') DEFAULT NULL,
  `w` enum('a','b','it''s','ü','NULL') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_float`
--

DROP TABLE IF EXISTS `t_float`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_float` (
  `id` int NOT NULL,
  `v` float DEFAULT NULL,
  `w` float DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_float_7_3`
--

DROP TABLE IF EXISTS `t_float_7_3`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_float_7_3` (
  `id` int NOT NULL,
  `v` float(7,3) DEFAULT NULL,
  `w` float(7,3) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_float_u`
--

DROP TABLE IF EXISTS `t_float_u`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_float_u` (
  `id` int NOT NULL,
  `v` float unsigned DEFAULT NULL,
  `w` float unsigned DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_geomcoll`
--

DROP TABLE IF EXISTS `t_geomcoll`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_geomcoll` (
  `id` int NOT NULL,
  `v` geomcollection DEFAULT NULL,
  `w` geomcollection DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_geometry`
--

DROP TABLE IF EXISTS `t_geometry`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_geometry` (
  `id` int NOT NULL,
  `v` geometry DEFAULT NULL,
  `w` geometry DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_int`
--

DROP TABLE IF EXISTS `t_int`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_int` (
  `id` int NOT NULL,
  `v` int DEFAULT NULL,
  `w` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_int_u`
--

DROP TABLE IF EXISTS `t_int_u`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_int_u` (
  `id` int NOT NULL,
  `v` int unsigned DEFAULT NULL,
  `w` int unsigned DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_int_z`
--

DROP TABLE IF EXISTS `t_int_z`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_int_z` (
  `id` int NOT NULL,
  `v` int(5) unsigned zerofill DEFAULT NULL,
  `w` int(5) unsigned zerofill DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_json`
--

DROP TABLE IF EXISTS `t_json`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_json` (
  `id` int NOT NULL,
  `v` json DEFAULT NULL,
  `w` json DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_linestring`
--

DROP TABLE IF EXISTS `t_linestring`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_linestring` (
  `id` int NOT NULL,
  `v` linestring DEFAULT NULL,
  `w` linestring DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_longblob`
--

DROP TABLE IF EXISTS `t_longblob`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_longblob` (
  `id` int NOT NULL,
  `v` longblob,
  `w` longblob,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_longtext`
--

DROP TABLE IF EXISTS `t_longtext`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_longtext` (
  `id` int NOT NULL,
  `v` longtext,
  `w` longtext,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_mediumblob`
--

DROP TABLE IF EXISTS `t_mediumblob`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_mediumblob` (
  `id` int NOT NULL,
  `v` mediumblob,
  `w` mediumblob,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_mediumint`
--

DROP TABLE IF EXISTS `t_mediumint`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_mediumint` (
  `id` int NOT NULL,
  `v` mediumint DEFAULT NULL,
  `w` mediumint DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_mediumint_u`
--

DROP TABLE IF EXISTS `t_mediumint_u`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_mediumint_u` (
  `id` int NOT NULL,
  `v` mediumint unsigned DEFAULT NULL,
  `w` mediumint unsigned DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_mediumint_z`
--

DROP TABLE IF EXISTS `t_mediumint_z`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_mediumint_z` (
  `id` int NOT NULL,
  `v` mediumint(5) unsigned zerofill DEFAULT NULL,
  `w` mediumint(5) unsigned zerofill DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_mediumtext`
--

DROP TABLE IF EXISTS `t_mediumtext`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_mediumtext` (
  `id` int NOT NULL,
  `v` mediumtext,
  `w` mediumtext,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_multilinestring`
--

DROP TABLE IF EXISTS `t_multilinestring`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_multilinestring` (
  `id` int NOT NULL,
  `v` multilinestring DEFAULT NULL,
  `w` multilinestring DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_multipoint`
--

DROP TABLE IF EXISTS `t_multipoint`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_multipoint` (
  `id` int NOT NULL,
  `v` multipoint DEFAULT NULL,
  `w` multipoint DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_multipolygon`
--

DROP TABLE IF EXISTS `t_multipolygon`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_multipolygon` (
  `id` int NOT NULL,
  `v` multipolygon DEFAULT NULL,
  `w` multipolygon DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_point`
--

DROP TABLE IF EXISTS `t_point`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_point` (
  `id` int NOT NULL,
  `v` point DEFAULT NULL,
  `w` point DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_point_srid`
--

DROP TABLE IF EXISTS `t_point_srid`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_point_srid` (
  `id` int NOT NULL,
  `v` point /*!80003 SRID 4326 */ DEFAULT NULL,
  `w` point /*!80003 SRID 4326 */ DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_polygon`
--

DROP TABLE IF EXISTS `t_polygon`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_polygon` (
  `id` int NOT NULL,
  `v` polygon DEFAULT NULL,
  `w` polygon DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_set_1`
--

DROP TABLE IF EXISTS `t_set_1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_set_1` (
  `id` int NOT NULL,
  `v` set('s0') DEFAULT NULL,
  `w` set('s0') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_set_16`
--

DROP TABLE IF EXISTS `t_set_16`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_set_16` (
  `id` int NOT NULL,
  `v` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15') DEFAULT NULL,
  `w` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_set_17`
--

DROP TABLE IF EXISTS `t_set_17`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_set_17` (
  `id` int NOT NULL,
  `v` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16') DEFAULT NULL,
  `w` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_set_24`
--

DROP TABLE IF EXISTS `t_set_24`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_set_24` (
  `id` int NOT NULL,
  `v` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23') DEFAULT NULL,
  `w` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_set_25`
--

DROP TABLE IF EXISTS `t_set_25`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_set_25` (
  `id` int NOT NULL,
  `v` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24') DEFAULT NULL,
  `w` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_set_32`
--

DROP TABLE IF EXISTS `t_set_32`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_set_32` (
  `id` int NOT NULL,
  `v` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31') DEFAULT NULL,
  `w` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_set_33`
--

DROP TABLE IF EXISTS `t_set_33`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_set_33` (
  `id` int NOT NULL,
  `v` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31','s32') DEFAULT NULL,
  `w` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31','s32') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_set_64`
--

DROP TABLE IF EXISTS `t_set_64`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_set_64` (
  `id` int NOT NULL,
  `v` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31','s32','s33','s34','s35','s36','s37','s38','s39','s40','s41','s42','s43','s44','s45','s46','s47','s48','s49','s50','s51','s52','s53','s54','s55','s56','s57','s58','s59','s60','s61','s62','s63') DEFAULT NULL,
  `w` set('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31','s32','s33','s34','s35','s36','s37','s38','s39','s40','s41','s42','s43','s44','s45','s46','s47','s48','s49','s50','s51','s52','s53','s54','s55','s56','s57','s58','s59','s60','s61','s62','s63') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_set_8`
--

DROP TABLE IF EXISTS `t_set_8`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_set_8` (
  `id` int NOT NULL,
  `v` set('s0','s1','s2','s3','s4','s5','s6','s7') DEFAULT NULL,
  `w` set('s0','s1','s2','s3','s4','s5','s6','s7') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_set_9`
--

DROP TABLE IF EXISTS `t_set_9`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_set_9` (
  `id` int NOT NULL,
  `v` set('s0','s1','s2','s3','s4','s5','s6','s7','s8') DEFAULT NULL,
  `w` set('s0','s1','s2','s3','s4','s5','s6','s7','s8') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_smallint`
--

DROP TABLE IF EXISTS `t_smallint`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_smallint` (
  `id` int NOT NULL,
  `v` smallint DEFAULT NULL,
  `w` smallint DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_smallint_u`
--

DROP TABLE IF EXISTS `t_smallint_u`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_smallint_u` (
  `id` int NOT NULL,
  `v` smallint unsigned DEFAULT NULL,
  `w` smallint unsigned DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_smallint_z`
--

DROP TABLE IF EXISTS `t_smallint_z`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_smallint_z` (
  `id` int NOT NULL,
  `v` smallint(5) unsigned zerofill DEFAULT NULL,
  `w` smallint(5) unsigned zerofill DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_text`
--

DROP TABLE IF EXISTS `t_text`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_text` (
  `id` int NOT NULL,
  `v` text,
  `w` text,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_time_0`
--

DROP TABLE IF EXISTS `t_time_0`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_time_0` (
  `id` int NOT NULL,
  `v` time DEFAULT NULL,
  `w` time DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_time_1`
--

DROP TABLE IF EXISTS `t_time_1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_time_1` (
  `id` int NOT NULL,
  `v` time(1) DEFAULT NULL,
  `w` time(1) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_time_2`
--

DROP TABLE IF EXISTS `t_time_2`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_time_2` (
  `id` int NOT NULL,
  `v` time(2) DEFAULT NULL,
  `w` time(2) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_time_3`
--

DROP TABLE IF EXISTS `t_time_3`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_time_3` (
  `id` int NOT NULL,
  `v` time(3) DEFAULT NULL,
  `w` time(3) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_time_4`
--

DROP TABLE IF EXISTS `t_time_4`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_time_4` (
  `id` int NOT NULL,
  `v` time(4) DEFAULT NULL,
  `w` time(4) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_time_5`
--

DROP TABLE IF EXISTS `t_time_5`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_time_5` (
  `id` int NOT NULL,
  `v` time(5) DEFAULT NULL,
  `w` time(5) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_time_6`
--

DROP TABLE IF EXISTS `t_time_6`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_time_6` (
  `id` int NOT NULL,
  `v` time(6) DEFAULT NULL,
  `w` time(6) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_timestamp_0`
--

DROP TABLE IF EXISTS `t_timestamp_0`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_timestamp_0` (
  `id` int NOT NULL,
  `v` timestamp NULL DEFAULT NULL,
  `w` timestamp NULL DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_timestamp_1`
--

DROP TABLE IF EXISTS `t_timestamp_1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_timestamp_1` (
  `id` int NOT NULL,
  `v` timestamp(1) NULL DEFAULT NULL,
  `w` timestamp(1) NULL DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_timestamp_2`
--

DROP TABLE IF EXISTS `t_timestamp_2`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_timestamp_2` (
  `id` int NOT NULL,
  `v` timestamp(2) NULL DEFAULT NULL,
  `w` timestamp(2) NULL DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_timestamp_3`
--

DROP TABLE IF EXISTS `t_timestamp_3`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_timestamp_3` (
  `id` int NOT NULL,
  `v` timestamp(3) NULL DEFAULT NULL,
  `w` timestamp(3) NULL DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_timestamp_4`
--

DROP TABLE IF EXISTS `t_timestamp_4`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_timestamp_4` (
  `id` int NOT NULL,
  `v` timestamp(4) NULL DEFAULT NULL,
  `w` timestamp(4) NULL DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_timestamp_5`
--

DROP TABLE IF EXISTS `t_timestamp_5`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_timestamp_5` (
  `id` int NOT NULL,
  `v` timestamp(5) NULL DEFAULT NULL,
  `w` timestamp(5) NULL DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_timestamp_6`
--

DROP TABLE IF EXISTS `t_timestamp_6`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_timestamp_6` (
  `id` int NOT NULL,
  `v` timestamp(6) NULL DEFAULT NULL,
  `w` timestamp(6) NULL DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_tinyblob`
--

DROP TABLE IF EXISTS `t_tinyblob`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_tinyblob` (
  `id` int NOT NULL,
  `v` tinyblob,
  `w` tinyblob,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_tinyint`
--

DROP TABLE IF EXISTS `t_tinyint`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_tinyint` (
  `id` int NOT NULL,
  `v` tinyint DEFAULT NULL,
  `w` tinyint DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_tinyint_u`
--

DROP TABLE IF EXISTS `t_tinyint_u`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_tinyint_u` (
  `id` int NOT NULL,
  `v` tinyint unsigned DEFAULT NULL,
  `w` tinyint unsigned DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_tinyint_z`
--

DROP TABLE IF EXISTS `t_tinyint_z`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_tinyint_z` (
  `id` int NOT NULL,
  `v` tinyint(5) unsigned zerofill DEFAULT NULL,
  `w` tinyint(5) unsigned zerofill DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_tinytext`
--

DROP TABLE IF EXISTS `t_tinytext`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_tinytext` (
  `id` int NOT NULL,
  `v` tinytext,
  `w` tinytext,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_varbinary_255`
--

DROP TABLE IF EXISTS `t_varbinary_255`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_varbinary_255` (
  `id` int NOT NULL,
  `v` varbinary(255) DEFAULT NULL,
  `w` varbinary(255) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_varbinary_300`
--

DROP TABLE IF EXISTS `t_varbinary_300`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_varbinary_300` (
  `id` int NOT NULL,
  `v` varbinary(300) DEFAULT NULL,
  `w` varbinary(300) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_varbinary_65000`
--

DROP TABLE IF EXISTS `t_varbinary_65000`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_varbinary_65000` (
  `id` int NOT NULL,
  `v` varbinary(30000) DEFAULT NULL,
  `w` varbinary(30000) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_varchar_1`
--

DROP TABLE IF EXISTS `t_varchar_1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_varchar_1` (
  `id` int NOT NULL,
  `v` varchar(1) DEFAULT NULL,
  `w` varchar(1) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_varchar_255l`
--

DROP TABLE IF EXISTS `t_varchar_255l`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_varchar_255l` (
  `id` int NOT NULL,
  `v` varchar(255) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  `w` varchar(255) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_varchar_256l`
--

DROP TABLE IF EXISTS `t_varchar_256l`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_varchar_256l` (
  `id` int NOT NULL,
  `v` varchar(256) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  `w` varchar(256) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_varchar_5000`
--

DROP TABLE IF EXISTS `t_varchar_5000`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_varchar_5000` (
  `id` int NOT NULL,
  `v` varchar(5000) DEFAULT NULL,
  `w` varchar(5000) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_varchar_63`
--

DROP TABLE IF EXISTS `t_varchar_63`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_varchar_63` (
  `id` int NOT NULL,
  `v` varchar(63) DEFAULT NULL,
  `w` varchar(63) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_varchar_64`
--

DROP TABLE IF EXISTS `t_varchar_64`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_varchar_64` (
  `id` int NOT NULL,
  `v` varchar(64) DEFAULT NULL,
  `w` varchar(64) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_vector`
--

DROP TABLE IF EXISTS `t_vector`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_vector` (
  `id` int NOT NULL,
  `v` vector(4) DEFAULT NULL,
  `w` vector(4) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `t_year`
--

DROP TABLE IF EXISTS `t_year`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t_year` (
  `id` int NOT NULL,
  `v` year DEFAULT NULL,
  `w` year DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping routines for database 'tt_types'
--

--
-- Current Database: `tt_wide`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `tt_wide` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `tt_wide`;

--
-- Table structure for table `defs`
--

DROP TABLE IF EXISTS `defs`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `defs` (
  `id` int NOT NULL AUTO_INCREMENT,
  `a` int DEFAULT '42',
  `b` varchar(10) DEFAULT 'dflt',
  `ts` timestamp NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  `d` datetime(6) DEFAULT CURRENT_TIMESTAMP(6),
  `n` int NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `gen`
--

DROP TABLE IF EXISTS `gen`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `gen` (
  `id` int NOT NULL,
  `a` int DEFAULT NULL,
  `b` int DEFAULT NULL,
  `vv` int GENERATED ALWAYS AS ((`a` + `b`)) VIRTUAL,
  `ss` int GENERATED ALWAYS AS ((`a` * `b`)) STORED,
  `t` varchar(20) DEFAULT NULL,
  `u` varchar(60) GENERATED ALWAYS AS (concat(`t`,_utf8mb4'-',`a`)) STORED,
  PRIMARY KEY (`id`),
  UNIQUE KEY `vv` (`vv`),
  KEY `ss` (`ss`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `gen2`
--

DROP TABLE IF EXISTS `gen2`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `gen2` (
  `v` int GENERATED ALWAYS AS ((`a` + 1)) VIRTUAL,
  `a` int DEFAULT NULL,
  `s` int GENERATED ALWAYS AS ((`a` * 2)) STORED,
  `id` int NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `invis`
--

DROP TABLE IF EXISTS `invis`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `invis` (
  `id` int NOT NULL,
  `a` int DEFAULT NULL,
  `hid` int DEFAULT '5' /*!80023 INVISIBLE */,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `w1`
--

DROP TABLE IF EXISTS `w1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `w1` (
  `id` int NOT NULL,
  `c0` tinyint DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `w100`
--

DROP TABLE IF EXISTS `w100`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `w100` (
  `id` int NOT NULL,
  `c0` tinyint DEFAULT NULL,
  `c1` smallint unsigned DEFAULT NULL,
  `c2` mediumint DEFAULT NULL,
  `c3` int unsigned DEFAULT NULL,
  `c4` bigint DEFAULT NULL,
  `c5` float DEFAULT NULL,
  `c6` double DEFAULT NULL,
  `c7` decimal(12,4) DEFAULT NULL,
  `c8` bit(11) DEFAULT NULL,
  `c9` year DEFAULT NULL,
  `c10` date DEFAULT NULL,
  `c11` time(3) DEFAULT NULL,
  `c12` datetime(6) DEFAULT NULL,
  `c13` timestamp(2) NULL DEFAULT NULL,
  `c14` char(10) DEFAULT NULL,
  `c15` varchar(300) DEFAULT NULL,
  `c16` binary(5) DEFAULT NULL,
  `c17` varbinary(20) DEFAULT NULL,
  `c18` text,
  `c19` blob,
  `c20` enum('x','y','z') DEFAULT NULL,
  `c21` set('p','q','r') DEFAULT NULL,
  `c22` json DEFAULT NULL,
  `c23` tinyint DEFAULT NULL,
  `c24` smallint unsigned DEFAULT NULL,
  `c25` mediumint DEFAULT NULL,
  `c26` int unsigned DEFAULT NULL,
  `c27` bigint DEFAULT NULL,
  `c28` float DEFAULT NULL,
  `c29` double DEFAULT NULL,
  `c30` decimal(12,4) DEFAULT NULL,
  `c31` bit(11) DEFAULT NULL,
  `c32` year DEFAULT NULL,
  `c33` date DEFAULT NULL,
  `c34` time(3) DEFAULT NULL,
  `c35` datetime(6) DEFAULT NULL,
  `c36` timestamp(2) NULL DEFAULT NULL,
  `c37` char(10) DEFAULT NULL,
  `c38` varchar(300) DEFAULT NULL,
  `c39` binary(5) DEFAULT NULL,
  `c40` varbinary(20) DEFAULT NULL,
  `c41` text,
  `c42` blob,
  `c43` enum('x','y','z') DEFAULT NULL,
  `c44` set('p','q','r') DEFAULT NULL,
  `c45` json DEFAULT NULL,
  `c46` tinyint DEFAULT NULL,
  `c47` smallint unsigned DEFAULT NULL,
  `c48` mediumint DEFAULT NULL,
  `c49` int unsigned DEFAULT NULL,
  `c50` bigint DEFAULT NULL,
  `c51` float DEFAULT NULL,
  `c52` double DEFAULT NULL,
  `c53` decimal(12,4) DEFAULT NULL,
  `c54` bit(11) DEFAULT NULL,
  `c55` year DEFAULT NULL,
  `c56` date DEFAULT NULL,
  `c57` time(3) DEFAULT NULL,
  `c58` datetime(6) DEFAULT NULL,
  `c59` timestamp(2) NULL DEFAULT NULL,
  `c60` char(10) DEFAULT NULL,
  `c61` varchar(300) DEFAULT NULL,
  `c62` binary(5) DEFAULT NULL,
  `c63` varbinary(20) DEFAULT NULL,
  `c64` text,
  `c65` blob,
  `c66` enum('x','y','z') DEFAULT NULL,
  `c67` set('p','q','r') DEFAULT NULL,
  `c68` json DEFAULT NULL,
  `c69` tinyint DEFAULT NULL,
  `c70` smallint unsigned DEFAULT NULL,
  `c71` mediumint DEFAULT NULL,
  `c72` int unsigned DEFAULT NULL,
  `c73` bigint DEFAULT NULL,
  `c74` float DEFAULT NULL,
  `c75` double DEFAULT NULL,
  `c76` decimal(12,4) DEFAULT NULL,
  `c77` bit(11) DEFAULT NULL,
  `c78` year DEFAULT NULL,
  `c79` date DEFAULT NULL,
  `c80` time(3) DEFAULT NULL,
  `c81` datetime(6) DEFAULT NULL,
  `c82` timestamp(2) NULL DEFAULT NULL,
  `c83` char(10) DEFAULT NULL,
  `c84` varchar(300) DEFAULT NULL,
  `c85` binary(5) DEFAULT NULL,
  `c86` varbinary(20) DEFAULT NULL,
  `c87` text,
  `c88` blob,
  `c89` enum('x','y','z') DEFAULT NULL,
  `c90` set('p','q','r') DEFAULT NULL,
  `c91` json DEFAULT NULL,
  `c92` tinyint DEFAULT NULL,
  `c93` smallint unsigned DEFAULT NULL,
  `c94` mediumint DEFAULT NULL,
  `c95` int unsigned DEFAULT NULL,
  `c96` bigint DEFAULT NULL,
  `c97` float DEFAULT NULL,
  `c98` double DEFAULT NULL,
  `c99` decimal(12,4) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `w16`
--

DROP TABLE IF EXISTS `w16`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `w16` (
  `id` int NOT NULL,
  `c0` tinyint DEFAULT NULL,
  `c1` smallint unsigned DEFAULT NULL,
  `c2` mediumint DEFAULT NULL,
  `c3` int unsigned DEFAULT NULL,
  `c4` bigint DEFAULT NULL,
  `c5` float DEFAULT NULL,
  `c6` double DEFAULT NULL,
  `c7` decimal(12,4) DEFAULT NULL,
  `c8` bit(11) DEFAULT NULL,
  `c9` year DEFAULT NULL,
  `c10` date DEFAULT NULL,
  `c11` time(3) DEFAULT NULL,
  `c12` datetime(6) DEFAULT NULL,
  `c13` timestamp(2) NULL DEFAULT NULL,
  `c14` char(10) DEFAULT NULL,
  `c15` varchar(300) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `w17`
--

DROP TABLE IF EXISTS `w17`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `w17` (
  `id` int NOT NULL,
  `c0` tinyint DEFAULT NULL,
  `c1` smallint unsigned DEFAULT NULL,
  `c2` mediumint DEFAULT NULL,
  `c3` int unsigned DEFAULT NULL,
  `c4` bigint DEFAULT NULL,
  `c5` float DEFAULT NULL,
  `c6` double DEFAULT NULL,
  `c7` decimal(12,4) DEFAULT NULL,
  `c8` bit(11) DEFAULT NULL,
  `c9` year DEFAULT NULL,
  `c10` date DEFAULT NULL,
  `c11` time(3) DEFAULT NULL,
  `c12` datetime(6) DEFAULT NULL,
  `c13` timestamp(2) NULL DEFAULT NULL,
  `c14` char(10) DEFAULT NULL,
  `c15` varchar(300) DEFAULT NULL,
  `c16` binary(5) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `w200`
--

DROP TABLE IF EXISTS `w200`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `w200` (
  `id` int NOT NULL,
  `c0` tinyint DEFAULT NULL,
  `c1` smallint unsigned DEFAULT NULL,
  `c2` mediumint DEFAULT NULL,
  `c3` int unsigned DEFAULT NULL,
  `c4` bigint DEFAULT NULL,
  `c5` float DEFAULT NULL,
  `c6` double DEFAULT NULL,
  `c7` decimal(12,4) DEFAULT NULL,
  `c8` bit(11) DEFAULT NULL,
  `c9` year DEFAULT NULL,
  `c10` date DEFAULT NULL,
  `c11` time(3) DEFAULT NULL,
  `c12` datetime(6) DEFAULT NULL,
  `c13` timestamp(2) NULL DEFAULT NULL,
  `c14` char(10) DEFAULT NULL,
  `c15` varchar(300) DEFAULT NULL,
  `c16` binary(5) DEFAULT NULL,
  `c17` varbinary(20) DEFAULT NULL,
  `c18` text,
  `c19` blob,
  `c20` enum('x','y','z') DEFAULT NULL,
  `c21` set('p','q','r') DEFAULT NULL,
  `c22` json DEFAULT NULL,
  `c23` tinyint DEFAULT NULL,
  `c24` smallint unsigned DEFAULT NULL,
  `c25` mediumint DEFAULT NULL,
  `c26` int unsigned DEFAULT NULL,
  `c27` bigint DEFAULT NULL,
  `c28` float DEFAULT NULL,
  `c29` double DEFAULT NULL,
  `c30` decimal(12,4) DEFAULT NULL,
  `c31` bit(11) DEFAULT NULL,
  `c32` year DEFAULT NULL,
  `c33` date DEFAULT NULL,
  `c34` time(3) DEFAULT NULL,
  `c35` datetime(6) DEFAULT NULL,
  `c36` timestamp(2) NULL DEFAULT NULL,
  `c37` char(10) DEFAULT NULL,
  `c38` varchar(300) DEFAULT NULL,
  `c39` binary(5) DEFAULT NULL,
  `c40` varbinary(20) DEFAULT NULL,
  `c41` text,
  `c42` blob,
  `c43` enum('x','y','z') DEFAULT NULL,
  `c44` set('p','q','r') DEFAULT NULL,
  `c45` json DEFAULT NULL,
  `c46` tinyint DEFAULT NULL,
  `c47` smallint unsigned DEFAULT NULL,
  `c48` mediumint DEFAULT NULL,
  `c49` int unsigned DEFAULT NULL,
  `c50` bigint DEFAULT NULL,
  `c51` float DEFAULT NULL,
  `c52` double DEFAULT NULL,
  `c53` decimal(12,4) DEFAULT NULL,
  `c54` bit(11) DEFAULT NULL,
  `c55` year DEFAULT NULL,
  `c56` date DEFAULT NULL,
  `c57` time(3) DEFAULT NULL,
  `c58` datetime(6) DEFAULT NULL,
  `c59` timestamp(2) NULL DEFAULT NULL,
  `c60` char(10) DEFAULT NULL,
  `c61` varchar(300) DEFAULT NULL,
  `c62` binary(5) DEFAULT NULL,
  `c63` varbinary(20) DEFAULT NULL,
  `c64` text,
  `c65` blob,
  `c66` enum('x','y','z') DEFAULT NULL,
  `c67` set('p','q','r') DEFAULT NULL,
  `c68` json DEFAULT NULL,
  `c69` tinyint DEFAULT NULL,
  `c70` smallint unsigned DEFAULT NULL,
  `c71` mediumint DEFAULT NULL,
  `c72` int unsigned DEFAULT NULL,
  `c73` bigint DEFAULT NULL,
  `c74` float DEFAULT NULL,
  `c75` double DEFAULT NULL,
  `c76` decimal(12,4) DEFAULT NULL,
  `c77` bit(11) DEFAULT NULL,
  `c78` year DEFAULT NULL,
  `c79` date DEFAULT NULL,
  `c80` time(3) DEFAULT NULL,
  `c81` datetime(6) DEFAULT NULL,
  `c82` timestamp(2) NULL DEFAULT NULL,
  `c83` char(10) DEFAULT NULL,
  `c84` varchar(300) DEFAULT NULL,
  `c85` binary(5) DEFAULT NULL,
  `c86` varbinary(20) DEFAULT NULL,
  `c87` text,
  `c88` blob,
  `c89` enum('x','y','z') DEFAULT NULL,
  `c90` set('p','q','r') DEFAULT NULL,
  `c91` json DEFAULT NULL,
  `c92` tinyint DEFAULT NULL,
  `c93` smallint unsigned DEFAULT NULL,
  `c94` mediumint DEFAULT NULL,
  `c95` int unsigned DEFAULT NULL,
  `c96` bigint DEFAULT NULL,
  `c97` float DEFAULT NULL,
  `c98` double DEFAULT NULL,
  `c99` decimal(12,4) DEFAULT NULL,
  `c100` bit(11) DEFAULT NULL,
  `c101` year DEFAULT NULL,
  `c102` date DEFAULT NULL,
  `c103` time(3) DEFAULT NULL,
  `c104` datetime(6) DEFAULT NULL,
  `c105` timestamp(2) NULL DEFAULT NULL,
  `c106` char(10) DEFAULT NULL,
  `c107` varchar(300) DEFAULT NULL,
  `c108` binary(5) DEFAULT NULL,
  `c109` varbinary(20) DEFAULT NULL,
  `c110` text,
  `c111` blob,
  `c112` enum('x','y','z') DEFAULT NULL,
  `c113` set('p','q','r') DEFAULT NULL,
  `c114` json DEFAULT NULL,
  `c115` tinyint DEFAULT NULL,
  `c116` smallint unsigned DEFAULT NULL,
  `c117` mediumint DEFAULT NULL,
  `c118` int unsigned DEFAULT NULL,
  `c119` bigint DEFAULT NULL,
  `c120` float DEFAULT NULL,
  `c121` double DEFAULT NULL,
  `c122` decimal(12,4) DEFAULT NULL,
  `c123` bit(11) DEFAULT NULL,
  `c124` year DEFAULT NULL,
  `c125` date DEFAULT NULL,
  `c126` time(3) DEFAULT NULL,
  `c127` datetime(6) DEFAULT NULL,
  `c128` timestamp(2) NULL DEFAULT NULL,
  `c129` char(10) DEFAULT NULL,
  `c130` varchar(300) DEFAULT NULL,
  `c131` binary(5) DEFAULT NULL,
  `c132` varbinary(20) DEFAULT NULL,
  `c133` text,
  `c134` blob,
  `c135` enum('x','y','z') DEFAULT NULL,
  `c136` set('p','q','r') DEFAULT NULL,
  `c137` json DEFAULT NULL,
  `c138` tinyint DEFAULT NULL,
  `c139` smallint unsigned DEFAULT NULL,
  `c140` mediumint DEFAULT NULL,
  `c141` int unsigned DEFAULT NULL,
  `c142` bigint DEFAULT NULL,
  `c143` float DEFAULT NULL,
  `c144` double DEFAULT NULL,
  `c145` decimal(12,4) DEFAULT NULL,
  `c146` bit(11) DEFAULT NULL,
  `c147` year DEFAULT NULL,
  `c148` date DEFAULT NULL,
  `c149` time(3) DEFAULT NULL,
  `c150` datetime(6) DEFAULT NULL,
  `c151` timestamp(2) NULL DEFAULT NULL,
  `c152` char(10) DEFAULT NULL,
  `c153` varchar(300) DEFAULT NULL,
  `c154` binary(5) DEFAULT NULL,
  `c155` varbinary(20) DEFAULT NULL,
  `c156` text,
  `c157` blob,
  `c158` enum('x','y','z') DEFAULT NULL,
  `c159` set('p','q','r') DEFAULT NULL,
  `c160` json DEFAULT NULL,
  `c161` tinyint DEFAULT NULL,
  `c162` smallint unsigned DEFAULT NULL,
  `c163` mediumint DEFAULT NULL,
  `c164` int unsigned DEFAULT NULL,
  `c165` bigint DEFAULT NULL,
  `c166` float DEFAULT NULL,
  `c167` double DEFAULT NULL,
  `c168` decimal(12,4) DEFAULT NULL,
  `c169` bit(11) DEFAULT NULL,
  `c170` year DEFAULT NULL,
  `c171` date DEFAULT NULL,
  `c172` time(3) DEFAULT NULL,
  `c173` datetime(6) DEFAULT NULL,
  `c174` timestamp(2) NULL DEFAULT NULL,
  `c175` char(10) DEFAULT NULL,
  `c176` varchar(300) DEFAULT NULL,
  `c177` binary(5) DEFAULT NULL,
  `c178` varbinary(20) DEFAULT NULL,
  `c179` text,
  `c180` blob,
  `c181` enum('x','y','z') DEFAULT NULL,
  `c182` set('p','q','r') DEFAULT NULL,
  `c183` json DEFAULT NULL,
  `c184` tinyint DEFAULT NULL,
  `c185` smallint unsigned DEFAULT NULL,
  `c186` mediumint DEFAULT NULL,
  `c187` int unsigned DEFAULT NULL,
  `c188` bigint DEFAULT NULL,
  `c189` float DEFAULT NULL,
  `c190` double DEFAULT NULL,
  `c191` decimal(12,4) DEFAULT NULL,
  `c192` bit(11) DEFAULT NULL,
  `c193` year DEFAULT NULL,
  `c194` date DEFAULT NULL,
  `c195` time(3) DEFAULT NULL,
  `c196` datetime(6) DEFAULT NULL,
  `c197` timestamp(2) NULL DEFAULT NULL,
  `c198` char(10) DEFAULT NULL,
  `c199` varchar(300) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `w64`
--

DROP TABLE IF EXISTS `w64`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `w64` (
  `id` int NOT NULL,
  `c0` tinyint DEFAULT NULL,
  `c1` smallint unsigned DEFAULT NULL,
  `c2` mediumint DEFAULT NULL,
  `c3` int unsigned DEFAULT NULL,
  `c4` bigint DEFAULT NULL,
  `c5` float DEFAULT NULL,
  `c6` double DEFAULT NULL,
  `c7` decimal(12,4) DEFAULT NULL,
  `c8` bit(11) DEFAULT NULL,
  `c9` year DEFAULT NULL,
  `c10` date DEFAULT NULL,
  `c11` time(3) DEFAULT NULL,
  `c12` datetime(6) DEFAULT NULL,
  `c13` timestamp(2) NULL DEFAULT NULL,
  `c14` char(10) DEFAULT NULL,
  `c15` varchar(300) DEFAULT NULL,
  `c16` binary(5) DEFAULT NULL,
  `c17` varbinary(20) DEFAULT NULL,
  `c18` text,
  `c19` blob,
  `c20` enum('x','y','z') DEFAULT NULL,
  `c21` set('p','q','r') DEFAULT NULL,
  `c22` json DEFAULT NULL,
  `c23` tinyint DEFAULT NULL,
  `c24` smallint unsigned DEFAULT NULL,
  `c25` mediumint DEFAULT NULL,
  `c26` int unsigned DEFAULT NULL,
  `c27` bigint DEFAULT NULL,
  `c28` float DEFAULT NULL,
  `c29` double DEFAULT NULL,
  `c30` decimal(12,4) DEFAULT NULL,
  `c31` bit(11) DEFAULT NULL,
  `c32` year DEFAULT NULL,
  `c33` date DEFAULT NULL,
  `c34` time(3) DEFAULT NULL,
  `c35` datetime(6) DEFAULT NULL,
  `c36` timestamp(2) NULL DEFAULT NULL,
  `c37` char(10) DEFAULT NULL,
  `c38` varchar(300) DEFAULT NULL,
  `c39` binary(5) DEFAULT NULL,
  `c40` varbinary(20) DEFAULT NULL,
  `c41` text,
  `c42` blob,
  `c43` enum('x','y','z') DEFAULT NULL,
  `c44` set('p','q','r') DEFAULT NULL,
  `c45` json DEFAULT NULL,
  `c46` tinyint DEFAULT NULL,
  `c47` smallint unsigned DEFAULT NULL,
  `c48` mediumint DEFAULT NULL,
  `c49` int unsigned DEFAULT NULL,
  `c50` bigint DEFAULT NULL,
  `c51` float DEFAULT NULL,
  `c52` double DEFAULT NULL,
  `c53` decimal(12,4) DEFAULT NULL,
  `c54` bit(11) DEFAULT NULL,
  `c55` year DEFAULT NULL,
  `c56` date DEFAULT NULL,
  `c57` time(3) DEFAULT NULL,
  `c58` datetime(6) DEFAULT NULL,
  `c59` timestamp(2) NULL DEFAULT NULL,
  `c60` char(10) DEFAULT NULL,
  `c61` varchar(300) DEFAULT NULL,
  `c62` binary(5) DEFAULT NULL,
  `c63` varbinary(20) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `w65`
--

DROP TABLE IF EXISTS `w65`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `w65` (
  `id` int NOT NULL,
  `c0` tinyint DEFAULT NULL,
  `c1` smallint unsigned DEFAULT NULL,
  `c2` mediumint DEFAULT NULL,
  `c3` int unsigned DEFAULT NULL,
  `c4` bigint DEFAULT NULL,
  `c5` float DEFAULT NULL,
  `c6` double DEFAULT NULL,
  `c7` decimal(12,4) DEFAULT NULL,
  `c8` bit(11) DEFAULT NULL,
  `c9` year DEFAULT NULL,
  `c10` date DEFAULT NULL,
  `c11` time(3) DEFAULT NULL,
  `c12` datetime(6) DEFAULT NULL,
  `c13` timestamp(2) NULL DEFAULT NULL,
  `c14` char(10) DEFAULT NULL,
  `c15` varchar(300) DEFAULT NULL,
  `c16` binary(5) DEFAULT NULL,
  `c17` varbinary(20) DEFAULT NULL,
  `c18` text,
  `c19` blob,
  `c20` enum('x','y','z') DEFAULT NULL,
  `c21` set('p','q','r') DEFAULT NULL,
  `c22` json DEFAULT NULL,
  `c23` tinyint DEFAULT NULL,
  `c24` smallint unsigned DEFAULT NULL,
  `c25` mediumint DEFAULT NULL,
  `c26` int unsigned DEFAULT NULL,
  `c27` bigint DEFAULT NULL,
  `c28` float DEFAULT NULL,
  `c29` double DEFAULT NULL,
  `c30` decimal(12,4) DEFAULT NULL,
  `c31` bit(11) DEFAULT NULL,
  `c32` year DEFAULT NULL,
  `c33` date DEFAULT NULL,
  `c34` time(3) DEFAULT NULL,
  `c35` datetime(6) DEFAULT NULL,
  `c36` timestamp(2) NULL DEFAULT NULL,
  `c37` char(10) DEFAULT NULL,
  `c38` varchar(300) DEFAULT NULL,
  `c39` binary(5) DEFAULT NULL,
  `c40` varbinary(20) DEFAULT NULL,
  `c41` text,
  `c42` blob,
  `c43` enum('x','y','z') DEFAULT NULL,
  `c44` set('p','q','r') DEFAULT NULL,
  `c45` json DEFAULT NULL,
  `c46` tinyint DEFAULT NULL,
  `c47` smallint unsigned DEFAULT NULL,
  `c48` mediumint DEFAULT NULL,
  `c49` int unsigned DEFAULT NULL,
  `c50` bigint DEFAULT NULL,
  `c51` float DEFAULT NULL,
  `c52` double DEFAULT NULL,
  `c53` decimal(12,4) DEFAULT NULL,
  `c54` bit(11) DEFAULT NULL,
  `c55` year DEFAULT NULL,
  `c56` date DEFAULT NULL,
  `c57` time(3) DEFAULT NULL,
  `c58` datetime(6) DEFAULT NULL,
  `c59` timestamp(2) NULL DEFAULT NULL,
  `c60` char(10) DEFAULT NULL,
  `c61` varchar(300) DEFAULT NULL,
  `c62` binary(5) DEFAULT NULL,
  `c63` varbinary(20) DEFAULT NULL,
  `c64` text,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `w7`
--

DROP TABLE IF EXISTS `w7`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `w7` (
  `id` int NOT NULL,
  `c0` tinyint DEFAULT NULL,
  `c1` smallint unsigned DEFAULT NULL,
  `c2` mediumint DEFAULT NULL,
  `c3` int unsigned DEFAULT NULL,
  `c4` bigint DEFAULT NULL,
  `c5` float DEFAULT NULL,
  `c6` double DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `w8`
--

DROP TABLE IF EXISTS `w8`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `w8` (
  `id` int NOT NULL,
  `c0` tinyint DEFAULT NULL,
  `c1` smallint unsigned DEFAULT NULL,
  `c2` mediumint DEFAULT NULL,
  `c3` int unsigned DEFAULT NULL,
  `c4` bigint DEFAULT NULL,
  `c5` float DEFAULT NULL,
  `c6` double DEFAULT NULL,
  `c7` decimal(12,4) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Table structure for table `w9`
--

DROP TABLE IF EXISTS `w9`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `w9` (
  `id` int NOT NULL,
  `c0` tinyint DEFAULT NULL,
  `c1` smallint unsigned DEFAULT NULL,
  `c2` mediumint DEFAULT NULL,
  `c3` int unsigned DEFAULT NULL,
  `c4` bigint DEFAULT NULL,
  `c5` float DEFAULT NULL,
  `c6` double DEFAULT NULL,
  `c7` decimal(12,4) DEFAULT NULL,
  `c8` bit(11) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping routines for database 'tt_wide'
--

--
-- Current Database: `tt_xa`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `tt_xa` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `tt_xa`;

--
-- Table structure for table `x`
--

DROP TABLE IF EXISTS `x`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `x` (
  `id` int NOT NULL,
  `v` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping routines for database 'tt_xa'
--

--
-- Current Database: `db-with-dash`
--

USE `db-with-dash`;

--
-- Current Database: `tt_ddl`
--

USE `tt_ddl`;

--
-- Final view structure for view `vw`
--

/*!50001 DROP VIEW IF EXISTS `vw`*/;
/*!50001 SET @saved_cs_client          = @@character_set_client */;
/*!50001 SET @saved_cs_results         = @@character_set_results */;
/*!50001 SET @saved_col_connection     = @@collation_connection */;
/*!50001 SET character_set_client      = utf8mb4 */;
/*!50001 SET character_set_results     = utf8mb4 */;
/*!50001 SET collation_connection      = utf8mb4_0900_ai_ci */;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `vw` AS select `ctas`.`a` AS `a`,`ctas`.`b` AS `b`,`ctas`.`c` AS `c`,`ctas`.`d` AS `d` from `ctas` */;
/*!50001 SET character_set_client      = @saved_cs_client */;
/*!50001 SET character_set_results     = @saved_cs_results */;
/*!50001 SET collation_connection      = @saved_col_connection */;

--
-- Current Database: `tt_gtid`
--

USE `tt_gtid`;

--
-- Current Database: `tt_img`
--

USE `tt_img`;

--
-- Current Database: `tt_json`
--

USE `tt_json`;

--
-- Current Database: `tt_keys`
--

USE `tt_keys`;

--
-- Current Database: `tt_trx`
--

USE `tt_trx`;

--
-- Current Database: `tt_types`
--

USE `tt_types`;

--
-- Current Database: `tt_wide`
--

USE `tt_wide`;

--
-- Current Database: `tt_xa`
--

USE `tt_xa`;
SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

-- Dump completed on 2026-11-21  3:48:20
