/**
 * One member of a dictionary (RFC 8941 section 3.2, RFC 9651) with the comma after it: key, value without parameters, comma. More lenient
 * than the standard in what players get wrong: capital letters in keys, text beyond ASCII. No two alternatives begin alike, so that
 * matching takes linear time.
 */
export const MEMBER =
  /[ \t]*([A-Za-z*][\w.*-]*)(?:=("(?:[^"\\]|\\.)*"|\((?:[^()"]|"(?:[^"\\]|\\.)*")*\)|[^\s,;"()=][^\s,;"()]*))?(?:;[ \t]*[A-Za-z*][\w.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^\s,;"()]+))?)*[ \t]*(,|$)/y;

/** Numbers: alone, and as items of an inner list with their parameters (RFC 8941 section 3.1.1). */
export const NUMBERS = {
  one: /^-?\d{1,15}(?:\.\d{1,15})?$/,
  items: /(?<=[( ])(-?\d{1,15}(?:\.\d{1,15})?)(?=[ ;)])/g,
} as const;

/** Content of a string; undefined for any other value. */
export function textOf(value: string | undefined): string | undefined {
  if (value === undefined || !value.startsWith('"')) return undefined;
  return value.includes('\\') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value.slice(1, -1);
}
