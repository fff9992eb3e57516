import { readMediaUrl } from '../media-url.ts';
import { readTime } from '../time.ts';
import { csvRows, type CsvField } from './csv-rows.ts';
import { BEGIN, uploadText, type RawItem, type RawProgram } from './raw-program.ts';
import { shown, UploadError } from './upload-error.ts';

const COLUMNS = ['program', 'scheduled', 'repeat', 'url', 'start', 'duration', 'fallbackOnErr'] as const;
type Column = (typeof COLUMNS)[number];
const REQUIRED: readonly Column[] = ['scheduled', 'url'];

/**
 * Reads programs from comma-separated values (RFC 4180): a line for each item, below a line with the names of the columns
 * `program`, `scheduled`, `repeat`, `url`, `start`, `duration` and `fallbackOnErr`, in any order, of which `scheduled` and
 * `url` must be there. Items of a program follow each other: only the first needs its `scheduled`.
 * @throws UploadError
 */
export function readCsvPrograms(text: string): RawProgram[] {
  const rows = csvRows(uploadText(text));
  const { value: header } = rows.next();
  if (!header) throw new UploadError(BEGIN, 'the line with the names of the columns is missing');
  const columns = header.map(readColumn);
  for (const column of REQUIRED)
    if (!columns.includes(column)) throw new UploadError(header[0] ?? BEGIN, `the column ${column} is missing`);
  for (const [index, column] of columns.entries())
    if (columns.indexOf(column) < index) throw new UploadError(header[index] ?? BEGIN, `${column} is there twice`);
  const programs: (RawProgram & { readonly items: RawItem[] })[] = [];
  const times = new Set<number>();
  for (const row of rows) {
    const [first = { ...BEGIN, text: '' }] = row;
    if (row.length !== columns.length)
      throw new UploadError(first, `the line has ${row.length} fields, not ${columns.length} as the first one`);
    const fields = new Map(columns.map((column, index) => [column, row[index] as CsvField]));
    const begun = programs.at(-1);
    const scheduled = fields.get('scheduled') as CsvField;
    if (begun !== undefined && (scheduled.text === '' || scheduled.text === begun.scheduled)) {
      begun.items.push(readItem(fields));
      continue;
    }
    const time = readTime(scheduled.text);
    if (time === undefined) throw new UploadError(scheduled, `${shown(scheduled.text)} is not a date and time`);
    if (times.has(time)) throw new UploadError(scheduled, `another program begins at ${scheduled.text}`);
    times.add(time);
    const name = fields.get('program')?.text ?? '';
    const repeat = readFlag(fields.get('repeat')) ?? false;
    programs.push({ name, scheduled: scheduled.text, repeat, items: [readItem(fields)] });
  }
  return programs;
}

function readColumn(field: CsvField): Column {
  const name = field.text.trim().toLowerCase();
  const column = COLUMNS.find((known) => known.toLowerCase() === name);
  if (column === undefined) throw new UploadError(field, `${shown(field.text)} is none of ${COLUMNS.join(', ')}`);
  return column;
}

function readItem(fields: ReadonlyMap<Column, CsvField>): RawItem {
  const url = fields.get('url') as CsvField;
  if (readMediaUrl(url.text) === undefined)
    throw new UploadError(url, `${shown(url.text)} is not file:// and a path, or stream://vhost/app/stream`);
  return {
    url: url.text,
    start: readNumber(fields.get('start'), 0) ?? 0,
    duration: readNumber(fields.get('duration'), -1) ?? -1,
    fallbackOnErr: readFlag(fields.get('fallbackOnErr')) ?? true,
  };
}

/** @param least smallest allowed value */
function readNumber(field: CsvField | undefined, least: number): number | undefined {
  if (field === undefined || field.text === '') return undefined;
  const number = /^-?\d{1,12}$/.test(field.text) ? Number(field.text) : NaN;
  if (number >= least) return number;
  throw new UploadError(field, `${shown(field.text)} is not a number of milliseconds of at least ${least}`);
}

function readFlag(field: CsvField | undefined): boolean | undefined {
  if (field === undefined || field.text === '') return undefined;
  if (/^(?:true|false)$/i.test(field.text)) return field.text.toLowerCase() === 'true';
  throw new UploadError(field, `${shown(field.text)} is not true or false`);
}
