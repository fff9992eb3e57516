import { gauge, type Family, type Sample } from './family.ts';

/** Finished recordings of an application on this node, and their limit, in bytes. */
export interface KeptRecordings {
  readonly vhost: string;
  readonly app: string;
  readonly bytes: number;
  readonly limit: number;
}

export function recordingFamilies(kept: () => readonly KeptRecordings[]): Family[] {
  const each = (value: (one: KeptRecordings) => number) => (): Sample[] =>
    kept().map((one) => ({ labels: { vhost: one.vhost, application: one.app }, value: value(one) }));
  return [
    gauge(
      'kiln_recordings_bytes',
      'Finished recordings of an application with a MaxTotalSize on this node.',
      each(({ bytes }) => bytes),
    ),
    gauge(
      'kiln_recordings_limit_bytes',
      'MaxTotalSize of the finished recordings of an application.',
      each(({ limit }) => limit),
    ),
  ];
}
