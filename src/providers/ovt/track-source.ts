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
  /** As Packet has it. */
  readonly key: Packet['key'];
  /** Ticks of the track: what the frame lasts, 0 when nothing tells; of sound it is exact. */
  readonly duration: number;
  /** Ticks of the track behind the time of the packet that it came in. */
  readonly offset: number;
}

/** What comes of one track of an origin, in canonical form. */
export interface TrackSource {
  /** Undefined until a decoder could be told what it needs; another object after each change of that. */
  readonly track: Track | undefined;
  /**
   * What a frame of the wire holds; the data are changed in place.
   * @throws BitstreamError when it is malformed, or nobody can decode it yet
   */
  units(frame: Frame): readonly SourceUnit[];
}

/**
 * @param described the track as the origin tells of it
 * @param plain its frames are in canonical form already: the origin is a node of this cluster
 */
export function trackSource(described: Track, plain: boolean): TrackSource {
  if (plain) return new PlainSource(described);
  if (described.type === 'video') return new VideoSource(described);
  if (described.type === 'audio' && described.codec !== 'MP2') return new AudioSource(described);
  return new PlainSource(described);
}

/** What is taken as it comes. The wire tells of key frames, and not which of them are IDR pictures. */
class PlainSource implements TrackSource {
  readonly track: Track;

  constructor(track: Track) {
    this.track = track;
  }

  units(frame: Frame): readonly SourceUnit[] {
    if (this.track.type === 'data') {
      // events of all kinds come in one track
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
