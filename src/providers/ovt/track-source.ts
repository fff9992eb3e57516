import { BitstreamError, tolerant } from '../../codecs/bits.ts';
import * as h264 from '../../codecs/h264.ts';
import * as h265 from '../../codecs/h265.ts';
import { MAX_EVENT_BYTES } from '../../core/event-limits.ts';
import type { Packet } from '../../core/packet.ts';
import type { Track } from '../../core/track.ts';
import type { Frame } from '../../protocols/ovt/media.ts';
import { AudioSource } from './audio-source.ts';
import { checkForm, isOfForm } from './frame-form.ts';
import { VideoSource } from './video-source.ts';

/** One frame in canonical form. */
export interface SourceUnit {
  readonly data: Buffer;
  readonly key: Packet['key'];
  /** Duration in ticks of the track; 0 when unknown, exact for audio. */
  readonly duration: number;
  /** Ticks of the track after the time of its packet. */
  readonly offset: number;
}

/** Converts one track of an origin to canonical form. */
export interface TrackSource {
  /** undefined until the decoder configuration is known; a new object after each change. */
  readonly track: Track | undefined;
  /**
   * Converts a frame, whose data it changes in place.
   * @throws BitstreamError when it is malformed, or cannot be decoded yet
   */
  units(frame: Frame): readonly SourceUnit[];
}

/**
 * @param described track as the origin describes it
 * @param plain whether its frames are in canonical form: the origin is a node of this cluster
 */
export function trackSource(described: Track, plain: boolean): TrackSource {
  if (plain) return new PlainSource(described);
  if (described.type === 'video') return new VideoSource(described);
  if (described.type === 'audio' && described.codec !== 'MP2') return new AudioSource(described);
  return new PlainSource(described);
}

/** Passes frames on unchanged. The protocol marks key frames, but not which of them are IDR frames. */
class PlainSource implements TrackSource {
  readonly track: Track;

  constructor(track: Track) {
    this.track = track;
  }

  units(frame: Frame): readonly SourceUnit[] {
    if (this.track.type === 'data') {
      // one track carries events of all kinds
      if (!isOfForm(this.track.codec, frame)) return [];
      if (frame.data.length > MAX_EVENT_BYTES) throw new BitstreamError(`an event of ${frame.data.length} bytes`);
    }
    checkForm(this.track.codec, frame);
    const { data, duration } = frame;
    return [{ data, key: this.#keyOf(frame), duration, offset: 0 }];
  }

  #keyOf({ key, data }: Frame): Packet['key'] {
    const { type, codec } = this.track;
    if (type !== 'video') return true;
    if (!key || (codec !== 'H264' && codec !== 'H265')) return key;
    const { startOf } = codec === 'H264' ? h264 : h265;
    return tolerant(() => startOf(data)) === 'idr' ? true : 'open';
  }
}
