import type { Packet } from '../../core/packet.ts';
import type { Track } from '../../core/track.ts';

/** A picture, a frame of sound or an event in canonical form, with times in ticks of the source's clock. */
export interface MediaUnit {
  readonly track: Track;
  readonly data: Buffer;
  /** As Packet has it. */
  readonly key: Packet['key'];
  /** Of decoding; as the source tells it, wrapped where its timestamps wrap. May be a fraction. */
  readonly time: number;
  /** From decoding to presentation, negative where the source has it so; 0 for everything but pictures. */
  readonly compositionTime: number;
  /** Ticks of the track; 0 for what does not tell, as pictures do. */
  readonly duration: number;
}
