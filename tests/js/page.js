// What scripts without elements read of a page, for Node: its language and its words. Import this before them.

const words = { Yes: "Ja", "%(num)s book": { one: "%(num)s Buch", other: "%(num)s Bücher" } };

globalThis.document = {
  documentElement: { lang: process.env.PAGE_LANGUAGE ?? "en" },
  querySelector: () => (process.env.PAGE_LANGUAGE === "de" ? { getAttribute: () => JSON.stringify(words) } : null),
};
