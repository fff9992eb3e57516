import { lookOf } from '../codecs/vui.ts';
import { VIDEO_TIMEBASE } from '../core/timebase.ts';
import type { Encoder, ImageTrack, MediaTrack, Track } from '../core/track.ts';
import type { Encoding } from './encoding.ts';
import type { EncodedFormat } from './encode.ts';

/** An encoder as the readers of its track see it. */
export class EncoderState implements Encoder {
  module = 'default';
  status: Encoder['status'];
}

/** Under which id and name a track is put out, and what it is made of. */
export interface TrackPlace {
  readonly id: number;
  readonly name: string;
  readonly from: MediaTrack;
}

/**
 * The track that an encoding makes.
 * @param format what the encoder told; undefined before it has
 */
export function encodedTrack(
  { id, name, from }: TrackPlace,
  encoding: Encoding,
  encoder: Encoder,
  format?: EncodedFormat,
): MediaTrack | ImageTrack {
  const { language, characteristics } = from;
  const common = { id, name, language, characteristics, bypass: false, encoder, config: format?.config };
  if (encoding.type === 'audio') {
    const { codec, bitrate } = encoding;
    const { samplerate = encoding.samplerate, channels = encoding.channels } = format ?? {};
    const timebase = format?.timebase ?? { num: 1, den: samplerate };
    return { ...common, type: 'audio', codec, bitrate, samplerate, channels, timebase };
  }
  const { width = encoding.width, height = encoding.height, timebase = VIDEO_TIMEBASE } = format ?? {};
  const picture = { ...common, width, height, timebase, framerate: encoding.framerate };
  if (encoding.type === 'image') {
    return { ...picture, type: 'image', codec: encoding.codec, bitrate: 0, keyFrameInterval: 0 };
  }
  const { codec, bitrate, keyFrameInterval } = encoding;
  const { inBandSets } = format ?? {};
  const told = { ...(format && lookOf(format)), ...(inBandSets && { inBandSets }) };
  return { ...picture, ...told, type: 'video', codec, bitrate, keyFrameInterval };
}

/** A track with the language that its input is said to be in now; the same object where it is already. */
export function inLanguage<T extends Track>(track: T, { language, characteristics }: MediaTrack): T {
  if (track.language === language && track.characteristics === characteristics) return track;
  return { ...track, language, characteristics };
}

/** What is told of a track that its encode can never make. */
export function unmadeTrack({ id, name, from }: TrackPlace): MediaTrack {
  return { ...from, id, name, bypass: false, encoder: { module: 'none', status: 'Failed' } };
}
