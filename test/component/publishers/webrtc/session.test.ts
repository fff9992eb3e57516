import test, { type ExecutionContext } from 'ava';
import { WebrtcSession } from '../../../../src/publishers/webrtc/session.ts';
import { StreamPublisher } from '../../../../src/publishers/webrtc/stream-publisher.ts';
import { createLogger } from '../../../../src/log/log.ts';
import type { TransportChoice } from '../../../../src/webrtc/candidate.ts';
import { offeredCodec } from '../../../../src/webrtc/codecs.ts';
import { LiveProducers } from '../../../../src/webrtc/live-producers.ts';
import { QualityReports } from '../../../../src/quality/quality-reports.ts';
import type { MediaWorker } from '../../../../src/webrtc/media-worker.ts';
import { videoTrack } from '../../../support/media/packets.ts';
import { startWebrtc } from '../../../support/webrtc/webrtc-server.ts';

const FINGERPRINT = { algorithm: 'sha-256', value: Array.from({ length: 32 }, () => 'AA').join(':') } as const;
const PEER = { fingerprint: FINGERPRINT, role: 'client', reports: true } as const;
const VIDEO = videoTrack();

/** A session that waits for the viewer's end of DTLS. */
async function open(t: ExecutionContext): Promise<{ session: WebrtcSession; worker: MediaWorker }> {
  const { registry, pool } = await startWebrtc(t);
  const application = registry.vhost('default').application('app');
  const input = application.publish('stream', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  const output = application.addOutput(input, 'stream');
  output.setTracks([VIDEO]);
  const config = application.config.publishers.webrtc;
  if (config === undefined) throw new Error('WebRTC is off');
  const publisher = new StreamPublisher(
    output,
    application,
    config,
    new LiveProducers(),
    new QualityReports(),
    createLogger('silent'),
  );
  t.teardown(() => publisher.close('the test is over'));
  const way: TransportChoice = {
    protocol: undefined,
    entries: [{ address: '127.0.0.1', first: 0, last: 0, protocol: 'udp' }],
  };
  await pool.ready();
  const worker = pool.pick(way, () => false);
  const session = new WebrtcSession('id', publisher, publisher.choices(undefined)[0], worker, way);
  await session.open([{ kind: 'video', mid: '0', codec: offeredCodec('H264', false, 'All'), extensions: [] }]);
  return { session, worker };
}

const UNAVAILABLE = { status: 'rejected', reason: { code: 'mediaUnavailable' } };

test('a worker that dies while it is asked makes the session unavailable, not the server faulty', async (t) => {
  const { session, worker } = await open(t);
  process.kill(worker.pid, 'SIGSTOP');
  const answers = [session.connect(PEER), session.restartIce()];
  process.kill(worker.pid, 'SIGKILL');
  for (const answer of await Promise.allSettled(answers)) t.like(answer, UNAVAILABLE);
  t.true(session.closed);
});

test('a session that ends while the worker is asked is not available, whatever the worker answers', async (t) => {
  const { session, worker } = await open(t);
  process.kill(worker.pid, 'SIGSTOP');
  const answers = [session.connect(PEER), session.restartIce()];
  session.close('the stream has ended');
  process.kill(worker.pid, 'SIGCONT');
  for (const answer of await Promise.allSettled(answers)) t.like(answer, UNAVAILABLE);
});
