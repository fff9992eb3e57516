import { worseState, type LinkCounts, type LinkState } from '../../core/links.ts';
import { plusLinks, type AllStreams, type StreamSeries } from './all-streams.ts';
import { counter, gauge, type Family, type Sample } from './family.ts';

type Direction = 'in' | 'out';

const KEYS = { in: 'linksIn', out: 'linksOut' } as const;

/**
 * Metrics of the SRT connections of each stream, its sources' and those of its viewers and pushes: sums of what is counted, and
 * the worst of the connections at present.
 */
export function linkFamilies(streams: AllStreams): Family[] {
  const counts = (name: string, help: string, read: (counts: LinkCounts) => number): Family =>
    counter(`kiln_stream_srt_${name}_total`, help, () => sums(streams, read));
  const state = (name: string, help: string, read: (state: LinkState) => number): Family =>
    gauge(`kiln_stream_srt_${name}`, help, () => worsts(streams, read));
  return [
    gauge(
      'kiln_stream_srt_connections',
      'SRT connections that bring a stream (in), and of viewers and pushes (out).',
      () => connections(streams),
    ),
    state(
      'rtt_seconds',
      'Smoothed round-trip time of the SRT connections of a stream: the longest of them.',
      ({ rttMs }) => rttMs / 1000,
    ),
    state(
      'capacity_bytes_per_second',
      'Estimated capacity of the network between the ends of an SRT connection: the least of those known.',
      ({ capacity }) => capacity / 8,
    ),
    state(
      'buffer_seconds',
      'Media in the buffers of SRT connections, received and not due yet or sent and not acknowledged: the most of them.',
      ({ bufferedMs }) => bufferedMs / 1000,
    ),
    counts('packets', 'Packets of media that came, or were sent, over SRT.', ({ packets }) => packets),
    counts('lost_packets', 'SRT packets that were missing at first.', ({ lost }) => lost),
    counts(
      'retransmitted_packets',
      'SRT packets that came, or were sent, again.',
      ({ retransmitted }) => retransmitted,
    ),
    counts('dropped_packets', 'SRT packets given up: too late to be played, or to be sent.', ({ dropped }) => dropped),
    counts('belated_packets', 'SRT packets that came after their time.', ({ belated }) => belated),
    counts(
      'undecryptable_packets',
      'SRT packets that were encrypted with another key.',
      ({ undecryptable }) => undecryptable,
    ),
  ];
}

/** Each stream, and direction, that has had connections. */
function* each(streams: AllStreams): Iterable<readonly [StreamSeries, Direction, LinkCounts]> {
  for (const series of streams.all()) {
    for (const direction of ['in', 'out'] as const) {
      let sum = series.carried[KEYS[direction]];
      for (const counters of series.counters) sum = plusLinks(sum, counters[KEYS[direction]]);
      if (sum.soFar > 0) yield [series, direction, sum.counts];
    }
  }
}

function* sums(streams: AllStreams, read: (counts: LinkCounts) => number): Iterable<Sample> {
  for (const [{ labels }, direction, counts] of each(streams))
    yield { sharedLabels: labels, labels: { direction }, value: read(counts) };
}

function* connections(streams: AllStreams): Iterable<Sample> {
  for (const [{ labels, counters }, direction] of each(streams)) {
    let value = 0;
    for (const one of counters) value += one[KEYS[direction]].size;
    yield { sharedLabels: labels, labels: { direction }, value };
  }
}

/** None for a direction without connections at present. */
function* worsts(streams: AllStreams, read: (state: LinkState) => number): Iterable<Sample> {
  for (const { labels, counters } of streams.all()) {
    for (const direction of ['in', 'out'] as const) {
      let worst: LinkState | undefined;
      for (const one of counters) {
        const state = one[KEYS[direction]].worst;
        if (state !== undefined) worst = worst === undefined ? state : worseState(worst, state);
      }
      if (worst !== undefined) yield { sharedLabels: labels, labels: { direction }, value: read(worst) };
    }
  }
}
