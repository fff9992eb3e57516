import { XMLParser, XMLValidator } from 'fast-xml-parser';
import type { FileInfo } from '../../../src/recording/info-file.ts';

/** An entry of an info file. */
export function infoOf(sequence: number, info: Partial<FileInfo> = {}): FileInfo {
  return {
    transactionId: 'T'.repeat(16),
    id: 'i',
    vhost: 'v',
    app: 'a',
    stream: 's',
    filePath: `/records/${sequence}.mp4`,
    recordBytes: 1,
    recordTime: 2,
    sequence,
    lastSequence: false,
    createdTime: 3,
    startTime: 4,
    finishTime: 5,
    ...info,
  };
}

/** The entries of an info file, in order. @throws Error for what is no XML */
export function entriesOf(text: string): { readonly sequence: string; readonly [key: string]: string }[] {
  const fault = XMLValidator.validate(text);
  if (fault !== true) throw new Error(`${fault.err.msg} in line ${fault.err.line}`);
  const parser = new XMLParser({ isArray: (name) => name === 'file', parseTagValue: false, trimValues: false });
  return parser.parse(text).files.file;
}
