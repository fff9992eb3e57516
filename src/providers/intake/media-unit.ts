import type { Packet } from '../../core/packet.ts';
import type { Track } from '../../core/track.ts';

/** Video frame, audio frame or event in canonical form, with times in ticks of the source's clock. */
export interface MediaUnit {
  readonly track: Track;
  readonly data: Buffer;
  readonly key: Packet['key'];
  /** Decoding time as sent by the source, wrapped where its timestamps wrap. May be a fraction. */
  readonly time: number;
  /** Offset from decoding to presentation, negative where the source sends it so; 0 for everything but video. */
  readonly compositionTime: number;
  /** Ticks of the track; 0 when not known, as for video. */
  readonly duration: number;
}
