import { hostname, networkInterfaces } from 'node:os';
import type { AlertMessage, Alert } from '../core/registry.ts';
import { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';
import { inputInfo, outputInfo } from '../stats/stream-info.ts';

export interface Sender {
  /** Node/Id in a cluster. */
  readonly id: string;
  readonly name: string;
  /** Whether addresses of publishers are left out. */
  readonly hidesClients: boolean;
}

/** Body of a notification (docs/compatibility.md#alerts). */
export interface Notification {
  readonly serverInfo: {
    readonly serverID: string;
    readonly serverName: string;
    readonly hostname: string;
    readonly ipAddresses: readonly string[];
  };
  /** `#vhost#app/stream` */
  readonly sourceUri: string;
  readonly type: Alert['type'];
  readonly messages: readonly AlertMessage[];
  readonly sourceInfo?: object;
  /** Input stream of an output stream. */
  readonly parentSourceInfo?: object;
  readonly internalQueues?: readonly object[];
}

/** Object of a notification. */
export interface Subject {
  readonly type: Alert['type'];
  /** `#vhost#app` */
  readonly application: string;
  readonly name: string;
  /** Undefined for a stream that never existed. */
  readonly stream: InputStream | OutputStream | undefined;
}

/** @param queues congested queues of the stream */
export function notification(
  { type, application, name, stream }: Subject,
  messages: readonly AlertMessage[],
  { id, name: serverName, hidesClients }: Sender,
  queues?: readonly object[],
): Notification {
  const about = (input: InputStream): object => ({ name: input.name, ...inputInfo(input, hidesClients) });
  return {
    serverInfo: { serverID: id, serverName, hostname: hostname(), ipAddresses: ownAddresses() },
    sourceUri: `${application}/${name}`,
    type,
    messages,
    ...(stream instanceof InputStream && { sourceInfo: about(stream) }),
    ...(stream !== undefined &&
      !(stream instanceof InputStream) && { sourceInfo: outputInfo(stream), parentSourceInfo: about(stream.input) }),
    ...(queues !== undefined && { internalQueues: queues }),
  };
}

/** Addresses of this machine that other machines may reach. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.flatMap(({ address, internal }) => (internal ? [] : [address])),
  );
}
