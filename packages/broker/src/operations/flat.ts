/**
 * The same text in one piece. V8 keeps a text that was put together as a tree of its parts and walks it whenever it is copied: one
 * that goes into many others is put together first, which reading any of its characters does.
 */
export function flat(text: string): string {
  text.charCodeAt(0);
  return text;
}

/** The same text without what it was made of: for one that is kept for long, as there are many of its kind. */
export const compact = (text: string): string => Buffer.from(text, "latin1").toString("latin1");

/** Texts in one piece that depend on nothing but an index, each made once. */
export function flatByIndex(make: (index: number) => string): (index: number) => string {
  const made: string[] = [];
  return (index) => {
    made[index] ??= flat(make(index));
    return made[index];
  };
}
