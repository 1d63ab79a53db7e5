"""What a Spark task does with its piece of the relay log. Pure: no database, no clock, no state between calls."""
