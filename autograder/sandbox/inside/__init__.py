"""What runs inside the sandbox and what both sides speak: mounted there whole, it imports nothing outside itself."""
