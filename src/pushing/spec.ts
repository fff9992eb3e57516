import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { TrackStream } from '../tasks/track-selection.ts';
import { pushProtocol, readDestination, type Destination } from './destination.ts';

const Spec = Type.Object({
  stream: TrackStream,
  protocol: Type.String(),
  url: Type.String(),
  /** Empty where none was given. */
  streamKey: Type.String(),
  /** Whether what is shown while the publisher is away is pushed; defaults to the application's. */
  standby: Type.Optional(Type.Boolean()),
  /** When the task was created, in milliseconds since the epoch. */
  createdTime: Type.Number(),
});

export type PushSpec = Static<typeof Spec>;

/** undefined for a spec of another version. */
export function readPushSpec(json: unknown): PushSpec | undefined {
  return Value.Check(Spec, json) ? json : undefined;
}

/** @returns undefined for a protocol unknown to this version; @throws PushError */
export function destinationOf({ protocol, url, streamKey }: PushSpec): Destination | undefined {
  const known = pushProtocol(protocol);
  return known && readDestination(known, url, streamKey);
}
