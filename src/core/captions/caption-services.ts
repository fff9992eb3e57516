import { CaptionDecoder } from '../../codecs/captions/caption-decoder.ts';
import type { Packet } from '../packet.ts';
import { CaptionFrames } from './caption-frames.ts';

/** Closed captions that the video of a stream has had. */
export class CaptionServices {
  readonly #frames = new CaptionFrames();
  readonly #decoder = new CaptionDecoder();
  #channels: readonly string[] = [];

  /** Whether a frame carried captions, even empty ones: then some may come. */
  get carried(): boolean {
    return this.#frames.carried;
  }

  /** Channels that have had captions, by their INSTREAM-ID. */
  get channels(): readonly string[] {
    return this.#channels;
  }

  /** Looks at a frame of video. */
  push(packet: Packet): void {
    for (const { data } of this.#frames.push(packet)) {
      if (data.length === 0) continue;
      this.#decoder.push(data);
      this.#channels = this.#decoder.used;
    }
  }
}
