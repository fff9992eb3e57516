import { hostname, networkInterfaces } from 'node:os';
import type { AlertMessage, Alert } from '../core/registry.ts';
import { InputStream, type OutputStream } from '../core/stream.ts';
import { inputInfo, outputInfo } from '../stats/stream-info.ts';

/** The server that a notification comes from. */
export interface Sender {
  /** Node/Id in a cluster. */
  readonly id: string;
  readonly name: string;
  /** Addresses of publishers are left out. */
  readonly hidesClients: boolean;
}

/** What is posted (docs/compatibility.md#alerts). */
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
  /** Of an output stream: its input stream. */
  readonly parentSourceInfo?: object;
  /** Those that are congested. */
  readonly internalQueues?: readonly object[];
}

/** What a notification is about. */
export interface Subject {
  readonly type: Alert['type'];
  /** `#vhost#app` */
  readonly application: string;
  readonly name: string;
  /** Undefined for one that was never there. */
  readonly stream: InputStream | OutputStream | undefined;
}

/** @param queues of the stream, that are congested */
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

/** Addresses at which other machines may reach this one. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.flatMap(({ address, internal }) => (internal ? [] : [address])),
  );
}
