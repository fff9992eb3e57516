import { hostname, networkInterfaces } from 'node:os';
import type { AlertMessage, Alert } from '../core/registry.ts';
import { InputStream, type OutputStream } from '../core/stream.ts';
import { inputInfo, outputInfo } from '../stats/stream-info.ts';

/** The server that a notification comes from. */
export interface Sender {
  /** Node/Id in a cluster. */
  readonly id: string;
  readonly name: string;
  /** Nobody is told where a publisher is. */
  readonly hidesClients: boolean;
}

/** What is posted (facts/02-config.md, section Alert). */
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
}

export interface Subject {
  readonly type: Alert['type'];
  /** `#vhost#app` */
  readonly application: string;
  readonly name: string;
  readonly stream: InputStream | OutputStream | undefined;
}

export function notification(
  { type, application, name, stream }: Subject,
  messages: readonly AlertMessage[],
  { id, name: serverName, hidesClients }: Sender,
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
  };
}

/** Addresses at which other machines may reach this one. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.flatMap(({ address, internal }) => (internal ? [] : [address])),
  );
}
