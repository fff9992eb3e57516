import type { Histogram } from '../../lib/histogram.ts';
import { byLabel, counter, histogram, type Family, type Labels, type Sample } from './family.ts';

interface Figures {
  readonly reports: number;
  readonly starvations: number;
  readonly droppedFrames: number;
  readonly startupSeconds: Histogram;
  readonly starvationSeconds: Histogram;
  readonly bitrateRatio: Histogram;
  readonly latencySeconds: Histogram;
  readonly playbackRate: Histogram;
  readonly bufferSeconds: Histogram;
  readonly lossRatio: Histogram;
  readonly roundTripSeconds: Histogram;
}

type Distribution = { [Name in keyof Figures]: Figures[Name] extends Histogram ? Name : never }[keyof Figures];

/** Reports of players about their playback, as this node has counted them. */
export interface Quality {
  readonly counts: Readonly<Record<'request' | 'event' | 'malformed' | 'unlisted', number>>;
  readonly streams: Iterable<{
    readonly names: { readonly vhost: string; readonly app: string; readonly stream: string };
    readonly all: Figures;
    readonly renditions: ReadonlyMap<string, Figures>;
  }>;
}

/** Metrics of what players report. Series of a stream end with it; histograms are of whole streams. */
export function qualityFamilies(quality: Quality): Family[] {
  const spread = (name: string, help: string, of: Distribution): Family =>
    histogram(name, help, () => histograms(quality, of));
  return [
    counter(
      'kiln_player_reports_received_total',
      'CMCD reports of players by result: `request` or `event` (counted), `malformed`, or `unlisted` (about a stream beyond the 2,000 that have figures).',
      () => byLabel('result', quality.counts),
    ),
    counter('kiln_player_reports_total', 'CMCD reports about a stream.', () =>
      total(quality, ({ reports }) => reports),
    ),
    counter('kiln_player_starvations_total', 'How often players reported that their buffer had run empty.', () =>
      total(quality, ({ starvations }) => starvations),
    ),
    counter('kiln_player_dropped_frames_total', 'Frames that players reported as dropped.', () =>
      total(quality, ({ droppedFrames }) => droppedFrames),
    ),
    counter('kiln_player_rendition_reports_total', 'CMCD reports about a rendition of a stream.', () =>
      ofRenditions(quality, ({ reports }) => reports),
    ),
    counter(
      'kiln_player_rendition_starvations_total',
      'How often players of a rendition reported that their buffer had run empty.',
      () => ofRenditions(quality, ({ starvations }) => starvations),
    ),
    spread('kiln_player_startup_seconds', 'Time from the start of playback to the first frame.', 'startupSeconds'),
    spread('kiln_player_starvation_seconds', 'Time for which buffers were empty.', 'starvationSeconds'),
    spread('kiln_player_bitrate_ratio', 'Bit rate of requested media, as a share of the highest.', 'bitrateRatio'),
    spread('kiln_player_latency_seconds', 'Latency of live playback, as players report it.', 'latencySeconds'),
    spread('kiln_player_playback_rate', 'Playback rate, 1 for normal speed.', 'playbackRate'),
    spread('kiln_player_buffer_seconds', 'Media in the buffers of players when they ask for more.', 'bufferSeconds'),
    spread(
      'kiln_player_packet_loss_ratio',
      'Packets that were lost on the way to a WebRTC viewer in 10 seconds, as a share of those sent, before retransmissions.',
      'lossRatio',
    ),
    spread(
      'kiln_player_round_trip_seconds',
      'Round-trip time to a WebRTC viewer, measured every 10 seconds.',
      'roundTripSeconds',
    ),
  ];
}

type Names = { readonly vhost: string; readonly app: string; readonly stream: string };

function labelsOf({ vhost, app, stream }: Names): Labels {
  return { vhost, application: app, stream };
}

function* total({ streams }: Quality, value: (figures: Figures) => number): Iterable<Sample> {
  for (const { names, all } of streams) yield { sharedLabels: labelsOf(names), value: value(all) };
}

function* ofRenditions({ streams }: Quality, value: (figures: Figures) => number): Iterable<Sample> {
  for (const { names, renditions } of streams) {
    const sharedLabels = labelsOf(names);
    for (const [rendition, figures] of renditions) yield { sharedLabels, labels: { rendition }, value: value(figures) };
  }
}

function* histograms({ streams }: Quality, of: Distribution): Iterable<readonly [Labels, Histogram]> {
  for (const { names, all } of streams) {
    const figures = all[of];
    if (figures.counts.some((count) => count > 0)) yield [labelsOf(names), figures];
  }
}
