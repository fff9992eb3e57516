import type { Histogram } from '../../lib/histogram.ts';
import { counter, gauge, histogram, type Family, type Sample } from './family.ts';

export interface Playlists {
  readonly form: { readonly kind: string };
  /** Requests that wait for a part, segment or playlist that is still to come. */
  readonly waiting: number;
  readonly feeds: number;
  readonly counts: {
    /** By kind of file and by status. */
    readonly requests: ReadonlyMap<string, ReadonlyMap<number, number>>;
    readonly partDelay: Histogram;
    readonly past: { readonly storedSegments: number; readonly storedBytes: number; readonly lostSegments: number };
    /** `earliest`: milliseconds since the epoch. */
    readonly keys: {
      readonly rotations: number;
      readonly failures: number;
      readonly requests: number;
      readonly requestFailures: number;
      readonly earliest: number | undefined;
    };
  };
}

/** Metrics of playlists and media over HTTP. */
export function playlistFamilies(all: readonly Playlists[]): Family[] {
  return [
    counter(
      'kiln_playlist_requests_total',
      'Requests of players, by what they ask for and by status of the answer.',
      () => requests(all),
    ),
    gauge(
      'kiln_playlist_feeds',
      'Connections on which other nodes are sent chunklists and parts that they follow.',
      () => all.map(({ form, feeds }) => ({ labels: { protocol: form.kind }, value: feeds })),
    ),
    gauge('kiln_playlist_waiting_requests', 'Requests that are held until what they ask for has come.', () =>
      all.map(({ form, waiting }) => ({ labels: { protocol: form.kind }, value: waiting })),
    ),
    counter('kiln_rewind_stored_segments_total', 'Segments that were written to the disk for viewers who rewind.', () =>
      all.map(({ form, counts: { past } }) => ({ labels: { protocol: form.kind }, value: past.storedSegments })),
    ),
    counter('kiln_rewind_stored_bytes_total', 'Bytes of those segments.', () =>
      all.map(({ form, counts: { past } }) => ({ labels: { protocol: form.kind }, value: past.storedBytes })),
    ),
    counter(
      'kiln_rewind_lost_segments_total',
      'Segments that could not be written, or not be read again: playlists list them as gaps.',
      () => all.map(({ form, counts: { past } }) => ({ labels: { protocol: form.kind }, value: past.lostSegments })),
    ),
    counter('kiln_drm_key_rotations_total', 'Changes of the keys of encrypted streams.', () =>
      all.map(({ form, counts: { keys } }) => ({ labels: { protocol: form.kind }, value: keys.rotations })),
    ),
    counter(
      'kiln_drm_key_rotation_failures_total',
      'Rotations for which the DRM file could not be used or had no other key, or a key server had not given the next one.',
      () => all.map(({ form, counts: { keys } }) => ({ labels: { protocol: form.kind }, value: keys.failures })),
    ),
    counter('kiln_drm_key_server_requests_total', 'Requests to key servers.', () =>
      all.map(({ form, counts: { keys } }) => ({ labels: { protocol: form.kind }, value: keys.requests })),
    ),
    counter('kiln_drm_key_server_failures_total', 'Requests to key servers that gave no key.', () =>
      all.map(({ form, counts: { keys } }) => ({ labels: { protocol: form.kind }, value: keys.requestFailures })),
    ),
    gauge(
      'kiln_drm_next_key_rotation_timestamp_seconds',
      'Time of the next rotation by a period, of any stream of this node; absent where there is none.',
      () =>
        all.flatMap(({ form, counts: { keys } }) =>
          keys.earliest === undefined ? [] : [{ labels: { protocol: form.kind }, value: keys.earliest / 1000 }],
        ),
    ),
    histogram(
      'kiln_playlist_part_delay_seconds',
      "Time from when the media at a part's end had arrived until players could have the part, encoding included.",
      () =>
        all.flatMap(({ form, counts: { partDelay } }) =>
          partDelay.sum > 0 || partDelay.counts.some((count) => count > 0)
            ? [[{ protocol: form.kind }, partDelay] as const]
            : [],
        ),
    ),
  ];
}

function* requests(all: readonly Playlists[]): Iterable<Sample> {
  for (const { form, counts } of all)
    for (const [kind, statuses] of counts.requests)
      for (const [status, value] of statuses)
        yield { labels: { protocol: form.kind, kind, status: String(status) }, value };
}
