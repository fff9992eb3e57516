import { isAmfObject, type AmfValue } from '../../protocols/rtmp/amf-value.ts';

/** What a source says of itself in `onMetaData`; numbers are 0 where it said nothing. */
export interface Declared {
  /** Which media it announces; undefined when it announces nothing. */
  readonly announced: { readonly video: boolean; readonly audio: boolean } | undefined;
  readonly width: number;
  readonly height: number;
  readonly framerate: number;
  /** Bits per second. */
  readonly videoBitrate: number;
  readonly audioBitrate: number;
}

export const NOTHING_DECLARED: Declared = Object.freeze({
  announced: undefined, width: 0, height: 0, framerate: 0, videoBitrate: 0, audioBitrate: 0,
});

/**
 * Reads the values of a data message; undefined when it is not stream metadata.
 * Encoders send `@setDataFrame`, `onMetaData`, {...}, or leave the first out.
 */
export function readMetadata(values: readonly AmfValue[]): Declared | undefined {
  const at = values[0] === '@setDataFrame' ? 1 : 0;
  const properties = values[at + 1];
  if (values[at] !== 'onMetaData' || properties === undefined || !isAmfObject(properties)) return undefined;
  const number = (name: string, most: number): number => {
    const value = Number(properties[name]);
    return value > 0 && value <= most ? value : 0;
  };
  const present = (name: string): boolean => {
    const value = properties[name];
    return value !== undefined && value !== null && value !== 0 && value !== '';
  };
  const video = present('videocodecid');
  const audio = present('audiocodecid');
  return {
    announced: video || audio ? { video, audio } : undefined,
    width: Math.round(number('width', 65_535)),
    height: Math.round(number('height', 65_535)),
    framerate: number('framerate', 1000) || number('videoframerate', 1000) || number('fps', 1000),
    videoBitrate: Math.round(number('videodatarate', 10_000_000) * 1000),
    audioBitrate: Math.round(number('audiodatarate', 100_000) * 1000),
  };
}
