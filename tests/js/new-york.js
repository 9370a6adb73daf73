// A reader in New York, for Node.

process.env.TZ = "America/New_York";
