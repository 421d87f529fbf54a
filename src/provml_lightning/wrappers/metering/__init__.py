"""What a PowerMeter is made of: sensors, places, rows, files, uploads, and one measure."""
