import { mock } from 'node:test';
import test from 'ava';
import { pino } from 'pino';
import { FaultLog } from '../../../../src/log/log.ts';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';
import { RtspIngest } from '../../../../src/providers/rtsp-intake/ingest.ts';
import { writeRtpHeader } from '../../../../src/protocols/rtp/header.ts';

test('senders receive a report on their media every five seconds', (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  const log = pino({ level: 'silent' });
  const reports: (readonly [track: number, data: Buffer])[] = [];
  const audio = (payloadType: number) =>
    ({
      kind: 'audio',
      payloadType,
      others: [],
      channels: 1,
      bitrate: 0,
      control: undefined,
      format: { encoding: 'PCMA', clockRate: 8000, parameters: {} },
    }) as const;
  const ingest = new RtspIngest({
    media: [audio(8), audio(97)],
    transport: 'tcp',
    clock: new LocalClock(),
    ignoresReports: true,
    silenceMs: 0,
    log,
    faults: new FaultLog(log),
    sink: { setTracks: () => {}, write: () => {}, lost: () => {}, trouble: () => {} },
    report: (track, data) => reports.push([track, data]),
    onEnd: () => t.fail(),
  });
  t.teardown(() => ingest.close());
  for (const sequence of [10, 11, 13]) {
    const packet = Buffer.alloc(172);
    writeRtpHeader(packet, { payloadType: 97, marker: false, sequence, timestamp: sequence * 160, ssrc: 0x01020304 });
    ingest.rtp(1, packet);
  }
  t.deepEqual(reports, []);
  mock.timers.tick(5000);
  const [[track, data] = [0, Buffer.alloc(0)], ...others] = reports;
  t.deepEqual([track, others.length], [1, 0]);
  // one of four did not come
  t.is(data.toString('hex', 8, 20), '01020304400000010000000d');
  t.regex(data.toString('latin1'), /kiln/);
  ingest.close();
  mock.timers.tick(20_000);
  t.is(reports.length, 1);
});
