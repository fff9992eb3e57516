import Type from 'typebox';
import { flag, integer, text } from '../blocks.ts';

const optionalText = () => text({ default: '' });

/** Common to the entries of all stream maps. */
const mapped = () => ({
  enable: flag(),
  /** Of the output stream: wildcards, and `${SourceStream}` for the name of the input stream. */
  streamName: text(),
  /** Comma list. */
  variantNames: optionalText(),
});

/** `Record` in the file that Publishers/FILE/StreamMap/Path names (docs/compatibility.md#recordings-pushes-dumps). */
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

/** `Push` in the file that Publishers/Push/StreamMap/Path names. */
export const PushEntry = Type.Object({
  ...mapped(),
  protocol: text(),
  url: text(),
  streamKey: optionalText(),
});
