"""What is built from the settings: hosts, overlay, Ray, the gate and the outputs."""
