// A page in German, for Node.

process.env.PAGE_LANGUAGE = "de";
