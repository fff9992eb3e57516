import type { Received } from './peer-process.ts';
import { PeerProcess, RemotePeer, type Change } from './remote-peer.ts';
import { parseRtp, parseSenderReports, type Rtp, type SentAt } from './rtp.ts';
import type { Kind, PeerOptions } from './whep-peer.ts';

export interface Frame {
  readonly payloads: readonly Buffer[];
  readonly timestamp: number;
}

const CLOCK_RATES = { video: 90_000, audio: 48_000 } as const;

const peers = new PeerProcess<PeerOptions, Received>(new URL('./peer-process.ts', import.meta.url));

/** A `WhepPeer` in a process of its own, with what it received. */
export class ViewerPeer extends RemotePeer<PeerOptions, Received> {
  readonly packets: { video: Rtp[]; audio: Rtp[] } = { video: [], audio: [] };
  /** Messages of the data channel. */
  readonly events: { readonly type: string; readonly [field: string]: unknown }[] = [];
  /** What sender reports told, of each SSRC. */
  readonly #reports = new Map<number, SentAt[]>();

  constructor(options: PeerOptions = {}) {
    super(peers, options, (news) => {
      if (news.is === 'event') return void this.events.push(JSON.parse(news.message));
      const { is, kind, packet } = news;
      if (is === 'packet') this.packets[kind].push(parseRtp(Buffer.from(packet)));
      else for (const report of parseSenderReports(Buffer.from(packet))) this.#noteReport(report);
    });
  }

  /** Plays from a WHEP endpoint. @throws Error for any status but 201 */
  play(url: string, change?: Change, changeOffer?: Change): Promise<Response> {
    return this.post(url, change, changeOffer);
  }

  /**
   * When pictures and sound were sent, by the middle one of all reports so far: receivers reckon from many, for a way that
   * wavers moves each. undefined when there are none yet.
   */
  sentAt(): Readonly<Record<Kind, SentAt>> | undefined {
    const of = (kind: Kind) => middle(this.#reports.get(this.packets[kind].at(-1)?.ssrc ?? -1), CLOCK_RATES[kind]);
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

  /** libdatachannel tells of each with every track. */
  #noteReport(report: SentAt): void {
    const known = this.#reports.get(report.ssrc) ?? [];
    if (known.at(-1)?.rtpTime !== report.rtpTime) known.push(report);
    this.#reports.set(report.ssrc, known);
  }
}

/** That which puts RTP time neither earliest nor latest. */
function middle(reports: readonly SentAt[] = [], clockRate: number): SentAt | undefined {
  const base = reports[0]?.rtpTime ?? 0;
  const lead = ({ seconds, rtpTime }: SentAt): number => seconds - ((rtpTime - base) | 0) / clockRate;
  return reports.toSorted((one, other) => lead(one) - lead(other))[reports.length >> 1];
}
