import type { FaultLog } from '../log/log.ts';

const MAX_LINE = 400;
/** Error lines kept for the reason of a failure. */
const MAX_ERRORS = 4;
/** Lines of one read that are examined; floods are only counted. */
const LOOKED_AT = 50;
/** Matches lines of libraries that ignore ffmpeg's log level. */
const NO_ERROR = /\[(?:info|warning|debug)\]/;
/** Matches lines that ffmpeg 7 adds after an error. */
const CONSEQUENCE =
  /Task finished|Terminating thread|Error sending frames|before EOF|Nothing was written|Conversion failed/;
const STOPPED = /\[[va]ost#.*Task finished with error/;
/** Matches the output that an error line names, by ffmpeg 5 and 6, or by 7; each output has one stream. */
const OUTPUT = /output stream #?(\d+):\d+|\[(?:vost|aost|vf|af|out)#(\d+)[:/ ]/;

/**
 * Reads ffmpeg's standard error at `-loglevel error`: counts all lines by kind, and keeps the last errors for the reason of
 * its end. Lines and floods are bounded.
 */
export class Diagnostics {
  readonly #faults: FaultLog;
  #rest = '';
  #errors: string[] = [];
  readonly #blamed = new Set<number>();
  readonly #stopped = new Set<number>();
  #lines = 0;

  constructor(faults: FaultLog) {
    this.#faults = faults;
  }

  /** Number of lines so far: a child that logs is alive. */
  get lines(): number {
    return this.#lines;
  }

  /** Indexes of the outputs that an error line names. */
  get blamed(): ReadonlySet<number> {
    return this.#blamed;
  }

  /** Indexes of outputs that ended by an error while ffmpeg continues, as version 7 does. */
  get stopped(): ReadonlySet<number> {
    return this.#stopped;
  }

  /** Last errors, oldest first; empty if there were none. */
  get errors(): string {
    return this.#errors.join('; ');
  }

  push(chunk: Buffer): void {
    const lines = (this.#rest + chunk.toString()).split(/[\r\n]+/);
    this.#rest = (lines.pop() ?? '').slice(0, MAX_LINE);
    this.#lines += lines.length;
    for (const line of lines.slice(0, LOOKED_AT)) this.#line(line.slice(0, MAX_LINE));
    if (lines.length > LOOKED_AT) this.#faults.count('ffmpeg: too many messages at once, some were ignored');
  }

  #line(line: string): void {
    const text = line.replace(/ @ 0x[0-9a-f]+/g, '').trim();
    if (text === '') return;
    this.#faults.count(`ffmpeg: ${text.replace(/\b(?:0x[0-9a-f]+|\d+)/g, 'N')}`);
    if (NO_ERROR.test(text)) return;
    const [, older, newer] = OUTPUT.exec(text) ?? [];
    const output = older ?? newer;
    if (output !== undefined) this.#blamed.add(Number(output));
    if (output !== undefined && STOPPED.test(text)) this.#stopped.add(Number(output));
    if (CONSEQUENCE.test(text)) return;
    if (this.#errors.length >= MAX_ERRORS) this.#errors.shift();
    this.#errors.push(text);
  }
}
