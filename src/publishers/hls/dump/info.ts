import { localTime } from '../../../lib/local-time.ts';
import { xmlText } from '../../../lib/xml-text.ts';
import type { GrowingText } from './growing-file.ts';

export type DumpStatus = 'Running' | 'Completed' | 'Error';

/** The info file of a dump (docs/compatibility.md#recordings-pushes-dumps). */
export class DumpInfo implements GrowingText {
  status: DumpStatus = 'Running';
  body = '';
  readonly tail = '  </Items>\n</HLSDumpInfo>\n';
  readonly #userData: string;
  readonly #stream: string;
  #count = 0;

  /** @param stream path of the output stream: `/vhost/app/stream` */
  constructor(stream: string, userData = '') {
    this.#stream = stream;
    this.#userData = userData;
  }

  get head(): string {
    return (
      '<?xml version="1.0" encoding="utf-8"?>\n<HLSDumpInfo>\n' +
      `  <UserData>${xmlText(this.#userData)}</UserData>\n  <Stream>${xmlText(this.#stream)}</Stream>\n` +
      `  <Status>${this.status}</Status>\n  <Items>\n`
    );
  }

  /** Adds a written file. @param file absolute path @param time milliseconds since the epoch */
  add(file: string, time: number): void {
    this.body +=
      `    <Item>\n      <Seq>${this.#count++}</Seq>\n      <Time>${localTime(time)}</Time>\n` +
      `      <File>${xmlText(file)}</File>\n    </Item>\n`;
  }
}
