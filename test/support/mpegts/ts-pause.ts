import { createSocket } from 'node:dgram';
import { inRealTime } from '../time/real-time.ts';
import { pmt, TsWriter, type PmtStream } from './ts-build.ts';

const PACKET = 188;
/** After which it would begin again. */
const NEVER_MS = 1e9;
const DATAGRAM = 7 * PACKET;
/** As ffmpeg writes them. */
const PMT_PID = 4096;
const STREAMS: readonly PmtStream[] = [
  { pid: 256, type: 0x1b },
  { pid: 257, type: 0x0f },
];

/** Since when and until when a stream is not there, in seconds. */
export interface Pause {
  readonly pid: number;
  readonly from: number;
  readonly to: number;
}

interface Datagram {
  /** Milliseconds. */
  readonly time: number;
  readonly data: Buffer;
}

/** What ffmpeg wrote of H.264 and AAC, without one of the streams for a while: the PMT does not have it then either. */
export function withPause(ts: Buffer, { pid: gone, from, to }: Pause): Datagram[] {
  const tables = new TsWriter(PMT_PID);
  const datagrams: Datagram[] = [];
  let packets: Buffer[] = [];
  let begin: number | undefined;
  let time = 0;
  const flush = (): void => {
    if (packets.length > 0) datagrams.push({ time, data: Buffer.concat(packets) });
    packets = [];
  };
  for (let at = 0; at + PACKET <= ts.length; at += PACKET) {
    const packet = ts.subarray(at, at + PACKET);
    const pid = packet.readUInt16BE(1) & 0x1fff;
    const hasClock =
      (packet.readUInt8(3) & 0x20) !== 0 && packet.readUInt8(4) > 0 && (packet.readUInt8(5) & 0x10) !== 0;
    if (hasClock) {
      const clock = packet.readUInt32BE(6) / 45;
      begin ??= clock;
      if (clock - begin > time) {
        flush();
        time = clock - begin;
      }
    }
    const seconds = time / 1000;
    const isAway = seconds >= from && seconds < to;
    if (isAway && pid === gone) continue;
    const version = seconds < from ? 1 : isAway ? 2 : 3;
    const streams = STREAMS.filter((stream) => !isAway || stream.pid !== gone);
    packets.push(...(pid === PMT_PID ? tables.section(pmt(1, streams, { version, pcrPid: 256 })) : [packet]));
    if (packets.length * PACKET >= DATAGRAM) flush();
  }
  flush();
  return datagrams;
}

/** Sends datagrams to a port of this machine, each when its time has come. @returns ends it */
export function sendInTime(datagrams: readonly Datagram[], port: number): () => void {
  const socket = createSocket('udp4');
  const end = inRealTime(datagrams, NEVER_MS, ({ data }) => socket.send(data, port, '127.0.0.1'));
  return () => {
    end();
    socket.close();
  };
}
