import { masked } from '../core/privacy.ts';
import type { Connection, Source } from '../core/source.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';
import { localTime } from '../lib/local-time.ts';
import { trackInfo, tracksInfo } from './track-info.ts';
import type { ConnectionInfo, InputInfo, OutputInfo, StreamInfo } from './stream-schema.ts';

/** Source types whose connection is shown (docs/compatibility.md#stream-objects). */
const CONNECTED: ReadonlySet<Source['type']> = new Set<Source['type']>(['WebRTC', 'Rtmp', 'SRT', 'MPEGTS']);

/**
 * Stream as the management API shows it (docs/compatibility.md#stream-objects).
 * @param hidesClients leaves out the address of the publisher
 */
export function streamInfo(input: InputStream, hidesClients = false): StreamInfo {
  return {
    input: inputInfo(input, hidesClients),
    name: input.name,
    outputs: Array.from(input.outputs.values(), outputInfo),
  };
}

export function inputInfo(input: InputStream, hidesClients = false): InputInfo {
  const { source } = input;
  const connection = CONNECTED.has(source.type) ? source.connection?.() : undefined;
  return {
    connection: connection && connectionInfo(hidesClients ? hidden(connection) : connection),
    createdTime: localTime(input.createdTime.getTime()),
    sourceType: source.type,
    sourceUrl: source.url,
    tracks: tracksInfo(input),
  };
}

export function outputInfo(output: OutputStream): OutputInfo {
  const playlists = output.playlists.map(({ name, fileName, options, renditions }) => ({
    fileName,
    name,
    options,
    renditions: [...renditions],
  }));
  const awaited = output.awaited.map((track) => trackInfo(track, undefined));
  return { name: output.name, playlists, tracks: [...tracksInfo(output), ...awaited].sort((a, b) => a.id - b.id) };
}

function hidden(connection: Connection): Connection {
  const { remoteAddress } = connection;
  return remoteAddress === undefined
    ? connection
    : { ...connection, remoteAddress: masked(remoteAddress), remotePort: 0 };
}

/** Shows an address and its port together or not at all. */
function connectionInfo(connection: Connection): ConnectionInfo {
  const { transport, protocol, localAddress, localPort, remoteAddress, remotePort } = connection;
  return {
    ...(localAddress !== undefined && localPort !== undefined && { localAddress, localPort }),
    protocol,
    ...(remoteAddress !== undefined && remotePort !== undefined && { remoteAddress, remotePort }),
    transport,
  };
}
