import Type from 'typebox';
import { flag, integer, text } from '../blocks.ts';

const optionalText = () => text({ default: '' });

const mapped = () => ({
  enable: flag(),
  /** Name of the output stream: wildcards, and `${SourceStream}` for the name of the input stream. */
  streamName: text(),
  /** Comma-separated. */
  variantNames: optionalText(),
});

/** Element `Record` of the file that Publishers/FILE/StreamMap/Path names (docs/compatibility.md#recordings-pushes-dumps). */
export const RecordEntry = Type.Object({
  ...mapped(),
  filePath: optionalText(),
  infoPath: optionalText(),
  /** Milliseconds; 0: one file. */
  segmentInterval: integer(0),
  segmentSchedule: optionalText(),
  segmentRule: optionalText(),
  metadata: optionalText(),
});

/** Element `Push` of the file that Publishers/Push/StreamMap/Path names. */
export const PushEntry = Type.Object({
  ...mapped(),
  protocol: text(),
  url: text(),
  streamKey: optionalText(),
});
