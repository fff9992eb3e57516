/** Date and time of RFC 3339. A `+` that was not escaped in a query arrives as a space. */
const RFC_3339 = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:[Zz]|([+\- ])(\d\d:\d\d))$/;

/** Reads a time of RFC 3339 from a query, in milliseconds since the epoch; undefined for anything else. */
export function parseRfc3339(text: string): number | undefined {
  const [, date, time, sign, offset] = RFC_3339.exec(text) ?? [];
  const at = Date.parse(`${date}T${time}${sign === undefined ? 'Z' : `${sign === '-' ? '-' : '+'}${offset}`}`);
  return Number.isNaN(at) ? undefined : at;
}
