import { gauge, type Family, type Sample } from './family.ts';

/** Finished recordings, or dumps of a module, of an application on this node, and their limit, in bytes. */
export interface KeptRecordings {
  readonly keeper: 'file' | 'llhls' | 'hls';
  readonly vhost: string;
  readonly app: string;
  readonly bytes: number;
  readonly limit: number;
}

const PROTOCOLS = { llhls: 'llhls', hls: 'hlsv3' } as const;

export function recordingFamilies(kept: () => readonly KeptRecordings[]): Family[] {
  const files = (value: 'bytes' | 'limit') => (): Sample[] =>
    kept().flatMap(({ keeper, vhost, app: application, [value]: bytes }) =>
      keeper === 'file' ? [{ labels: { vhost, application }, value: bytes }] : [],
    );
  const dumps = (value: 'bytes' | 'limit') => (): Sample[] =>
    kept().flatMap(({ keeper, vhost, app: application, [value]: bytes }) =>
      keeper === 'file' ? [] : [{ labels: { vhost, application, protocol: PROTOCOLS[keeper] }, value: bytes }],
    );
  return [
    gauge(
      'kiln_recordings_bytes',
      'Finished recordings of an application with a MaxTotalSize on this node.',
      files('bytes'),
    ),
    gauge('kiln_recordings_limit_bytes', 'MaxTotalSize of the finished recordings of an application.', files('limit')),
    gauge(
      'kiln_dumps_bytes',
      'Finished HLS dumps of an application with a DumpRetention/MaxTotalSize on this node.',
      dumps('bytes'),
    ),
    gauge('kiln_dumps_limit_bytes', 'DumpRetention/MaxTotalSize of an application.', dumps('limit')),
  ];
}
