import { formerOf, isSealed, readLine } from './chain.ts';

const NO_LINE = 'it is no line of an audit log';
const HEADLESS = 'the file does not start with its first line: lines were removed';
const ELSEWHERE =
  'the line before it is not the one that it follows: lines were removed, or files are missing or in another order';
const ALTERED = 'it was altered, or lines before it were altered, removed or put elsewhere, or the key is another';

export interface Verdict {
  /** First line at which the chain is broken, and the reason; undefined for an intact chain. */
  readonly broken: { readonly file: string; readonly line: number; readonly reason: string } | undefined;
  readonly lines: number;
  /** Observations that prove no change. */
  readonly notes: readonly string[];
}

export interface AuditFile {
  readonly name: string;
  /** Without line ends. */
  readonly lines: Iterable<string> | AsyncIterable<string>;
}

/** Checks files of one audit log, the oldest first. @param keys present and former ones */
export async function verify(files: readonly AuditFile[], keys: readonly string[]): Promise<Verdict> {
  const notes: string[] = [];
  let lines = 0;
  /** MAC and event of the line before, in this file or the previous one. */
  let before: string | undefined;
  let event: unknown;
  let torn: { readonly file: string; readonly line: number } | undefined;
  for (const [at, { name: file, lines: texts }] of files.entries()) {
    let line = 0;
    const broken = (reason: string, where = line) => ({ broken: { file, line: where, reason }, lines, notes });
    for await (const text of texts) {
      line += 1;
      const read = readLine(text);
      if (read === undefined) {
        if (torn !== undefined) return broken(NO_LINE, torn.line);
        // a line that reports it may follow
        torn = { file, line };
        continue;
      }
      const former = formerOf(read);
      if (line === 1 && former === undefined) return broken(HEADLESS);
      if (former !== undefined && former !== (before ?? '')) {
        if (before === undefined)
          notes.push(`${file} continues a file that was not given, whose last line has the MAC ${former}`);
        else if (former === '')
          notes.push(`${file}:${line} begins a chain of its own: the server found an empty file when it was started`);
        else return broken(ELSEWHERE);
      }
      if (!isSealed(keys, former ?? before ?? '', read)) return broken(ALTERED);
      if (torn !== undefined) {
        const { line: where } = torn;
        const { torn: bytes } = read.fields;
        if (typeof bytes !== 'number') return broken(NO_LINE, where);
        notes.push(`${file}:${where} was cut off when the server was killed (${bytes} bytes)`);
        torn = undefined;
      }
      if (read.fields.event === 'lost')
        notes.push(`${file}:${line} stands for ${Number(read.fields.lines)} calls that the disk did not take`);
      before = read.mac;
      event = read.fields.event;
      lines += 1;
    }
    if (line === 0) return broken('the file is empty');
    if (torn !== undefined && at < files.length - 1) return broken(NO_LINE, torn.line);
  }
  if (torn !== undefined)
    notes.push(`${torn.file}:${torn.line} is cut off: the server was killed while it wrote it, or is writing it`);
  if (event !== 'ended')
    notes.push('the last line is not that of a stop: the server runs, was killed, or lines after it were removed');
  return { broken: undefined, lines, notes };
}
