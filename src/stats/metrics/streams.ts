import type { Counters } from '../../core/counters.ts';
import { keyFrameSeconds, type Measured } from '../../core/meter.ts';
import type { AllStreams, StreamSeries, TrackSeries } from './all-streams.ts';
import { counter, gauge, type Family, type Sample } from './family.ts';

/** Metrics of this node's streams and their tracks. Their series end with them. */
export function streamFamilies(streams: AllStreams): Family[] {
  return [...inputFamilies(streams), ...trafficFamilies(streams), ...trackFamilies(streams)];
}

function inputFamilies(streams: AllStreams): Family[] {
  return [
    gauge(
      'kiln_stream_info',
      'What brings a stream, as sourceType of the management API has it; Relay: another node.',
      () =>
        map(streams.listed, ({ labels, input }) => {
          return { sharedLabels: labels, labels: { source: input?.source.type ?? 'Relay' }, value: 1 };
        }),
    ),
    gauge('kiln_stream_start_time_seconds', 'When a stream began, in seconds since 1970.', () =>
      ofInputs(streams, ({ createdTime }) => createdTime.getTime() / 1000),
    ),
    gauge(
      'kiln_stream_lag_seconds',
      'How long the newest media of a stream is ago, by the pace at which its media arrived: it grows while nothing arrives.',
      () => {
        const now = Date.now();
        return ofInputs(streams, ({ arrival }) => lag(now, arrival));
      },
    ),
    counter('kiln_stream_reconnects_total', 'How often a stream was published again within a minute of its end.', () =>
      map(streams.listed, ({ labels, input, reconnects }) => {
        return input && { sharedLabels: labels, value: reconnects };
      }),
    ),
  ];
}

function trafficFamilies(streams: AllStreams): Family[] {
  return [
    counter('kiln_stream_received_bytes_total', 'Bytes that came of a stream; not those of relays between nodes.', () =>
      map(streams.all(), (series) => {
        return series.hasSource ? total(series, ({ in: { totalBytes } }) => totalBytes, series.carried.in) : undefined;
      }),
    ),
    counter('kiln_stream_sent_bytes_total', 'Bytes of a stream that went to viewers whom this node counts.', () =>
      map(streams.all(), (series) => total(series, ({ out }) => out.totalBytes, series.carried.out)),
    ),
    counter(
      'kiln_stream_lost_packets_total',
      'Packets of a stream that never came, as its transport reports: RTP packets, SRT messages, gaps in MPEG-TS.',
      () =>
        map(streams.all(), (series) => {
          return series.hasSource ? total(series, ({ lostPackets }) => lostPackets, series.carried.lost) : undefined;
        }),
    ),
    gauge('kiln_stream_viewers', 'Viewers of a stream at this node, by protocol.', () => viewers(streams)),
    counter(
      'kiln_stream_dropped_packets_total',
      'Packets of a stream that were dropped because viewers, encoders or recordings at this node were too slow.',
      () =>
        map(streams.all(), (series) => total(series, ({ droppedPackets }) => droppedPackets, series.carried.dropped)),
    ),
    counter(
      'kiln_stream_slow_readers_total',
      'How often a viewer, encoder or recording fell so far behind a stream that it lost packets.',
      () => map(streams.all(), (series) => total(series, ({ slowReaders }) => slowReaders, series.carried.slow)),
    ),
  ];
}

function trackFamilies(streams: AllStreams): Family[] {
  return [
    gauge('kiln_stream_track_info', 'Codec of a track of an input stream.', () => codecs(streams)),
    gauge('kiln_stream_track_bytes_per_second', 'Bit rate of a track over its last second, in bytes.', () =>
      ofTracks(streams, isTimed, ({ bitrateLatest }) => bitrateLatest / 8),
    ),
    gauge('kiln_stream_track_frames_per_second', 'Frame rate of a video track over its last second.', () =>
      ofTracks(streams, isVideo, ({ framerateLatest }) => framerateLatest),
    ),
    gauge(
      'kiln_stream_track_key_frame_interval_seconds',
      'Time between the last two key frames of a video track, or since the last one where that is longer already.',
      () => ofTracks(streams, isVideo, keyFrameSeconds),
    ),
    gauge(
      'kiln_stream_track_arrival_jitter_seconds',
      'How unevenly the packets of a track arrive: the interarrival jitter of RFC 3550, whatever they come over.',
      () => jitters(streams),
    ),
    gauge(
      'kiln_stream_av_offset_seconds',
      'By how much the timestamps of audio are later than those of the video that arrives with it, over the last two seconds.',
      () => avOffsets(streams),
    ),
    gauge(
      'kiln_stream_track_bidirectional_frames',
      'Whether a video track has B-frames, with which WebRTC players stutter.',
      () => ofTracks(streams, isVideo, ({ hasBframes }) => Number(hasBframes)),
    ),
    gauge(
      'kiln_stream_track_open_gops',
      'Whether the key frames of a video track are no IDR frames: browsers that join may show nothing.',
      () => ofTracks(streams, isVideo, ({ keyFrames }) => Number(keyFrames === 'open')),
    ),
    gauge('kiln_stream_track_height_pixels', 'Height of a video track.', () => heights(streams)),
    counter('kiln_stream_track_config_changes_total', 'How often the format of a track changed in mid-stream.', () =>
      ofTracks(streams, isTimed, ({ configChangeCount }) => configChangeCount),
    ),
  ];
}

type Input = NonNullable<StreamSeries['input']>;

function* map<T>(all: Iterable<T>, sample: (one: T) => Sample | undefined): Iterable<Sample> {
  for (const one of all) {
    const made = sample(one);
    if (made !== undefined) yield made;
  }
}

function ofInputs(streams: AllStreams, value: (input: Input) => number | undefined): Iterable<Sample> {
  return map(streams.listed, ({ labels, input }) => {
    const read = input && value(input);
    return read === undefined ? undefined : { sharedLabels: labels, value: read };
  });
}

/** Lag in seconds; undefined before the first frame. */
function lag(now: number, arrival: Input['arrival']): number | undefined {
  const at = arrival.newest === undefined ? Infinity : arrival.at(arrival.newest);
  return Number.isFinite(at) ? Math.max(0, now - at) / 1000 : undefined;
}

function total({ labels, counters }: StreamSeries, read: (counters: Counters) => number, carried: number): Sample {
  let value = carried;
  for (const one of counters) value += read(one);
  return { sharedLabels: labels, value };
}

function isVideo({ type }: TrackSeries): boolean {
  return type === 'video';
}

function isTimed({ type }: TrackSeries): boolean {
  return type === 'video' || type === 'audio';
}

function* viewers(streams: AllStreams): Iterable<Sample> {
  for (const { labels, counters, protocols } of streams.all()) {
    for (const protocol of protocols) {
      let value = 0;
      for (const { publishers } of counters) value += publishers[protocol];
      yield { sharedLabels: labels, labels: { protocol }, value };
    }
  }
}

function* ofTracks(
  streams: AllStreams,
  isMeant: (track: TrackSeries) => boolean,
  value: (measured: Measured) => number,
): Iterable<Sample> {
  for (const { input, tracks } of streams.listed) {
    for (const track of tracks) {
      const measured = isMeant(track) ? input?.measured(track.id) : undefined;
      if (measured !== undefined) yield { sharedLabels: track.labels, value: value(measured) };
    }
  }
}

function* jitters(streams: AllStreams): Iterable<Sample> {
  for (const { input, tracks } of streams.listed) {
    if (input === undefined) continue;
    for (const track of tracks)
      if (isTimed(track)) yield { sharedLabels: track.labels, value: input.arrival.jitter(track.id) / 1000 };
  }
}

function* avOffsets(streams: AllStreams): Iterable<Sample> {
  for (const { input, labels } of streams.listed) {
    const latest = input?.arrival.avOffset()?.latest;
    if (latest !== undefined) yield { sharedLabels: labels, value: latest / 1000 };
  }
}

function* codecs(streams: AllStreams): Iterable<Sample> {
  for (const { input, tracks } of streams.listed) {
    for (const { id, labels } of tracks) {
      const codec = input?.tracks.find((track) => track.id === id)?.codec;
      if (codec !== undefined) yield { sharedLabels: labels, labels: { codec }, value: 1 };
    }
  }
}

function* heights(streams: AllStreams): Iterable<Sample> {
  for (const { input, tracks } of streams.listed) {
    for (const { id, labels } of tracks) {
      const track = input?.tracks.find((one) => one.id === id);
      if (track?.type === 'video') yield { sharedLabels: labels, value: track.height };
    }
  }
}
