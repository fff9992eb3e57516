import { UploadError, type Place } from './upload-error.ts';

export interface CsvField extends Place {
  readonly text: string;
}

const MAX_FIELDS = 100;
const FIELD = /"((?:[^"]|"")*)"|[^",\r\n]*/y;

/**
 * Rows of comma-separated values (RFC 4180); lines may end with LF alone. Empty lines are skipped.
 * @throws UploadError
 */
export function* csvRows(text: string): Generator<readonly CsvField[], void, undefined> {
  let row: CsvField[] = [];
  let line = 1;
  let lineBegins = 0;
  for (let at = 0; at <= text.length;) {
    const place = { line, column: at - lineBegins + 1 };
    FIELD.lastIndex = at;
    const [whole = '', quoted] = FIELD.exec(text) ?? [];
    if (quoted === undefined && text[at] === '"') throw new UploadError(place, 'the quotation has no end');
    if (row.length === MAX_FIELDS) throw new UploadError(place, `the line has more than ${MAX_FIELDS} fields`);
    row.push({ ...place, text: quoted?.replaceAll('""', '"') ?? whole });
    for (let next = whole.indexOf('\n'); next >= 0; next = whole.indexOf('\n', next + 1)) {
      line++;
      lineBegins = at + next + 1;
    }
    at += whole.length;
    if (text[at] === ',') {
      at++;
      continue;
    }
    const [end] = /^(?:\r\n|\n|\r|$)/.exec(text.slice(at, at + 2)) ?? [];
    if (end === undefined)
      throw new UploadError({ line, column: at - lineBegins + 1 }, 'a comma or the end of the line is missing here');
    if (row.length > 1 || row[0]?.text !== '') yield row;
    row = [];
    if (at === text.length) return;
    at += end.length;
    line++;
    lineBegins = at;
  }
}
