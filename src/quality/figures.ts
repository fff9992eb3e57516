import { Histogram } from '../lib/histogram.ts';
import type { Report } from './report.ts';

const STARTUP_SECONDS = [0.25, 0.5, 1, 2, 3, 5, 10, 30];
const STARVATION_SECONDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30];
const LATENCY_SECONDS = [0.5, 1, 2, 3, 5, 10, 20, 45, 90];
const BUFFER_SECONDS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30];
const BITRATE_RATIOS = [0.1, 0.25, 0.5, 0.75, 0.9, 1];
const LOSS_RATIOS = [0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
const ROUND_TRIP_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6];
const PLAYBACK_RATES = [0.5, 0.9, 0.99, 1, 1.01, 1.1, 1.5, 2];

/** Objects that are played: a request for one says how playback is going. */
const MEDIA: ReadonlySet<string | undefined> = new Set(['v', 'a', 'av', 'tt']);

/** Names of the histograms of figures. */
export const DISTRIBUTIONS = [
  'startupSeconds',
  'starvationSeconds',
  'bitrateRatio',
  'latencySeconds',
  'playbackRate',
  'bufferSeconds',
  'lossRatio',
  'roundTripSeconds',
] as const;
export type DistributionName = (typeof DISTRIBUTIONS)[number];

/** How packets came to one WebRTC viewer for some seconds. */
export interface Reception {
  /** Packets that were lost on the way, as a share of those sent: retransmissions may have replaced them. */
  readonly lossRatio: number;
  readonly roundTripSeconds: number;
}

/** Sums of what players have reported. Nothing in them is about a single player. */
export class Figures implements Readonly<Record<DistributionName, Histogram>> {
  reports = 0;
  /** Times that a buffer ran empty. */
  starvations = 0;
  droppedFrames = 0;
  readonly startupSeconds = new Histogram(STARTUP_SECONDS);
  readonly starvationSeconds = new Histogram(STARVATION_SECONDS);
  /** Bitrate of requested media, as a share of the highest. */
  readonly bitrateRatio = new Histogram(BITRATE_RATIOS);
  readonly latencySeconds = new Histogram(LATENCY_SECONDS);
  readonly playbackRate = new Histogram(PLAYBACK_RATES);
  readonly bufferSeconds = new Histogram(BUFFER_SECONDS);
  readonly lossRatio = new Histogram(LOSS_RATIOS);
  readonly roundTripSeconds = new Histogram(ROUND_TRIP_SECONDS);

  /** @param dropped frames since the session's last report */
  add(report: Report, dropped: number): void {
    const { br, tb, tpb, bl, bs, bsd, msd, ltc, pr, ot, e, sta } = report;
    this.reports++;
    this.droppedFrames += dropped;
    // in event mode players report the state instead
    if (bs || (e === 'ps' && sta === 'r')) this.starvations++;
    if (bsd !== undefined && bsd > 0) this.starvationSeconds.add(bsd / 1000);
    if (msd !== undefined) this.startupSeconds.add(msd / 1000);
    // hls.js 1.7 sends tb only of muxed media, and tpb with decimals
    const top = Math.round(tb ?? tpb ?? 0);
    if (br !== undefined && top > 0) this.bitrateRatio.add(Math.min(1, br / top));
    if (ltc !== undefined) this.latencySeconds.add(ltc / 1000);
    if (bl !== undefined) this.bufferSeconds.add(bl / 1000);
    if (pr !== undefined) this.playbackRate.add(pr);
    else if (MEDIA.has(ot)) this.playbackRate.add(1);
  }

  addReception({ lossRatio, roundTripSeconds }: Reception): void {
    this.lossRatio.add(lossRatio);
    this.roundTripSeconds.add(roundTripSeconds);
  }
}
