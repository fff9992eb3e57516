import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../src/core/packet.ts';
import type { Track } from '../../../src/core/track.ts';
import { FaultLog } from '../../../src/log/log.ts';
import { writeRtpHeader } from '../../../src/protocols/rtp/header.ts';
import type { RtspMedia } from '../../../src/protocols/rtsp/description.ts';
import { LocalClock } from '../../../src/providers/intake/local-clock.ts';
import { RtspIngest, type RtspIngestOptions } from '../../../src/providers/rtsp-intake/ingest.ts';

/** A described track of a server, by the encoding name of its payload format. */
export function described(
  kind: RtspMedia['kind'],
  payloadType: number,
  encoding: string,
  { clockRate = 90_000, parameters = {} }: Partial<RtspMedia['format']> = {},
): RtspMedia {
  return {
    kind,
    payloadType,
    others: [],
    channels: 1,
    bitrate: 0,
    control: undefined,
    format: { encoding, clockRate, parameters },
  };
}

/** The media of an RTSP server on their way into a stream, without the connection. */
export function setUpRtspIngest(
  t: ExecutionContext,
  media: readonly RtspMedia[],
  options: Partial<RtspIngestOptions> = {},
) {
  const log = pino({ level: 'silent' });
  const faults = new FaultLog(log);
  const told: (readonly Track[])[] = [];
  const packets: Packet[] = [];
  const troubles: string[] = [];
  const ingest = new RtspIngest({
    media,
    transport: 'tcp',
    clock: new LocalClock(),
    ignoresReports: false,
    silenceMs: 0,
    log,
    faults,
    sink: {
      setTracks: (tracks) => told.push(tracks),
      write: (packet) => packets.push(packet),
      lost: () => {},
      trouble: (code) => troubles.push(code),
    },
    report: () => {},
    onEnd: (reason) => t.fail(reason),
    ...options,
  });
  t.teardown(() => {
    ingest.close();
    faults.close();
  });
  const sequences = media.map(() => 0);
  /** Sends a packet of a track, by its place. */
  const send = (track: number, timestamp: number, payload: Buffer, marker = true): void => {
    const packet = Buffer.alloc(12 + payload.length);
    const { payloadType } = media[track] as RtspMedia;
    const sequence = sequences[track] as number;
    sequences[track] = sequence + 1;
    writeRtpHeader(packet, { payloadType, marker, sequence, timestamp, ssrc: payloadType });
    payload.copy(packet, 12);
    ingest.rtp(track, packet);
  };
  return { ingest, told, packets, troubles, send };
}
