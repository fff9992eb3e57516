import type { Received } from './peer-process.ts';
import { PeerProcess, RemotePeer } from './remote-peer.ts';
import { parseRtp, parseSenderReports, type Rtp, type SentAt } from './rtp.ts';
import type { PeerOptions } from './whep-peer.ts';

export interface Frame {
  readonly payloads: readonly Buffer[];
  readonly timestamp: number;
}

const peers = new PeerProcess<PeerOptions, Received>(new URL('./peer-process.ts', import.meta.url));

/** A `WhepPeer` in a process of its own, with what it received. */
export class ViewerPeer extends RemotePeer<PeerOptions, Received> {
  readonly packets: { video: Rtp[]; audio: Rtp[] } = { video: [], audio: [] };
  /** What the newest sender report told of each SSRC. */
  readonly #sentAt = new Map<number, SentAt>();

  constructor(options: PeerOptions = {}) {
    super(peers, options, ({ is, kind, packet }) => {
      if (is === 'packet') this.packets[kind].push(parseRtp(Buffer.from(packet)));
      else for (const report of parseSenderReports(Buffer.from(packet))) this.#sentAt.set(report.ssrc, report);
    });
  }

  /** Plays from a WHEP endpoint. @throws Error for any status but 201 */
  play(url: string): Promise<Response> {
    return this.post(url);
  }

  /** What the newest reports told of when pictures and sound were sent; undefined when there are none yet. */
  sentAt(): Readonly<Record<'video' | 'audio', SentAt>> | undefined {
    const of = (kind: 'video' | 'audio') => this.#sentAt.get(this.packets[kind].at(-1)?.ssrc ?? -1);
    const [video, audio] = [of('video'), of('audio')];
    return video && audio && { video, audio };
  }

  /** Resolves when sound has come for a second, and no picture meanwhile. */
  async soundAlone(): Promise<void> {
    let [heard, seen] = [0, -1];
    await this.until(() => {
      const { video, audio } = this.packets;
      if (video.length !== seen) [heard, seen] = [audio.length, video.length];
      return audio.length > heard + 50;
    });
  }

  /** Whole video frames, those that ended. */
  frames(): Frame[] {
    const frames: Frame[] = [];
    let payloads: Buffer[] = [];
    for (const { payload, marker, timestamp } of this.packets.video) {
      payloads.push(payload);
      if (!marker) continue;
      frames.push({ payloads, timestamp });
      payloads = [];
    }
    return frames;
  }
}
