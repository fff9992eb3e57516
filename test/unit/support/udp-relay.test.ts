import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { relayedOffer, relayedSdp } from '../../support/webrtc/relayed-peer.ts';
import { faulty, UdpRelay, type Faults } from '../../support/network/udp-relay.ts';
import { until } from '../../support/time/until.ts';

const MESSAGES = 400;
const ONE = Buffer.alloc(1);

async function socketOf(t: ExecutionContext): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => socket.close());
  return socket;
}

/** Sends numbers through a relay to a server that sends each back; what came there and what came back, in order. */
async function run(t: ExecutionContext, faults: Faults) {
  const server = await socketOf(t);
  const client = await socketOf(t);
  const relay = await UdpRelay.open(server.address().port, faulty(faults));
  t.teardown(() => relay.close());
  const there: number[] = [];
  const back: number[] = [];
  server.on('message', (datagram, { port, address }) => {
    there.push(datagram.readUInt16BE());
    server.send(datagram, port, address);
  });
  client.on('message', (datagram) => back.push(datagram.readUInt16BE()));
  for (let i = 0; i < MESSAGES; i++) {
    const datagram = Buffer.alloc(2);
    datagram.writeUInt16BE(i);
    client.send(datagram, relay.port, '127.0.0.1');
    // one at a time, so that no buffer of the system overflows
    if (i % 20 === 19) await until('they are there', () => relay.counts.toServer.received === i + 1);
  }
  const { toServer, toClient } = relay.counts;
  await until(
    'all have passed',
    () =>
      there.length === toServer.received - toServer.lost + toServer.duplicates &&
      toClient.received === there.length &&
      back.length === toClient.received - toClient.lost + toClient.duplicates,
  );
  return { relay, there, back };
}

test('a relay of datagrams without faults passes all in order, both ways', async (t) => {
  const { there, back, relay } = await run(t, { seed: 1 });
  const all = Array.from({ length: MESSAGES }, (_, i) => i);
  t.deepEqual(there, all);
  t.deepEqual(back, all);
  const counts = { received: MESSAGES, lost: 0, sent: MESSAGES, duplicates: 0, overtaken: 0 };
  t.deepEqual(relay.counts, { toServer: counts, toClient: counts });
});

test('losses and duplicates are the same for the same seed, and others for another', async (t) => {
  const faults = { loss: 0.1, duplication: 0.1, jitterMs: 20 };
  const sorted = (numbers: readonly number[]) => numbers.toSorted((one, other) => one - other);
  const [one, again, other] = await Promise.all([7, 7, 8].map((seed) => run(t, { seed, ...faults })));
  t.deepEqual(sorted(one!.there), sorted(again!.there));
  t.notDeepEqual(sorted(one!.there), sorted(other!.there));
  for (const {
    relay: { counts },
  } of [one!, other!]) {
    for (const { received, lost, duplicates, sent } of [counts.toServer, counts.toClient]) {
      t.true(lost > received * 0.04 && lost < received * 0.18, `lost ${lost} of ${received}`);
      t.true(duplicates > received * 0.03 && duplicates < received * 0.18, `doubled ${duplicates} of ${received}`);
      t.is(sent, received - lost + duplicates);
    }
  }
});

test('the ways of a client do not depend on those of others', (t) => {
  const faults = { seed: 3, loss: 0.2, jitterMs: 50 };
  const fates = (between: () => unknown, ways = faulty(faults)) => {
    const way = ways(1, 'toServer');
    const other = ways(0, 'toClient');
    return Array.from({ length: 100 }, () => (between() && other(ONE), way(ONE)));
  };
  t.deepEqual(
    fates(() => true),
    fates(() => false),
  );
  t.notDeepEqual(faulty(faults)(0, 'toServer')(ONE), faulty(faults)(1, 'toServer')(ONE));
});

test('delays stay within their bounds, and what is delayed is overtaken', async (t) => {
  const way = faulty({ seed: 5, delayMs: 30, jitterMs: 100 })(0, 'toClient');
  const delays = Array.from({ length: 1000 }, () => way(ONE)[0] ?? Number.NaN);
  t.true(delays.every((delay) => delay >= 30 && delay < 130));
  t.true(Math.min(...delays) < 35 && Math.max(...delays) > 125);

  const {
    there,
    relay: { counts },
  } = await run(t, { seed: 5, jitterMs: 40 });
  t.deepEqual(
    there.toSorted((one, other) => one - other),
    Array.from({ length: MESSAGES }, (_, i) => i),
  );
  t.true(counts.toServer.overtaken > 0);
  t.is(there.filter((number, i) => number < Math.max(...there.slice(0, i))).length, counts.toServer.overtaken);
});

test('each client of a relay of datagrams has its answers', async (t) => {
  const server = await socketOf(t);
  server.on('message', (datagram, { port, address }) =>
    server.send(Buffer.concat([datagram, datagram]), port, address),
  );
  const relay = await UdpRelay.open(server.address().port, faulty({ seed: 1 }));
  t.teardown(() => relay.close());
  const answers = await Promise.all(
    ['a', 'b', 'c'].map(async (name) => {
      const client = await socketOf(t);
      client.send(name, relay.port, '127.0.0.1');
      const [answer] = await once(client, 'message');
      return String(answer);
    }),
  );
  t.deepEqual(answers, ['aa', 'bb', 'cc']);
  t.is(relay.clients, 3);
});

const SDP = [
  'v=0',
  'm=video 9 UDP/TLS/RTP/SAVPF 96',
  'c=IN IP4 0.0.0.0',
  'a=candidate:1 1 UDP 2130706431 192.0.2.1 7001 typ host',
  'a=candidate:2 1 UDP 2130706175 192.0.2.1 7002 typ host',
  'a=candidate:3 1 TCP 1518280447 192.0.2.1 7001 typ host tcptype passive',
  'a=end-of-candidates',
  '',
].join('\r\n');

test('a peer that is given a server behind a relay knows no other way', async (t) => {
  const ways = faulty({ seed: 1 });
  const { relay, description } = await relayedSdp(SDP, ways);
  t.teardown(() => relay.close());
  t.is(relay.server, 7001);
  t.deepEqual(
    description.split('\r\n').filter((line) => line.startsWith('a=candidate')),
    [`a=candidate:1 1 UDP 2130706431 127.0.0.1 ${relay.port} typ host`],
  );
  t.is(description.split('\r\n').length, SDP.split('\r\n').length - 2);

  const candidates = [
    'candidate:1 1 UDP 1 192.0.2.1 7001 typ host',
    'candidate:3 1 TCP 1 192.0.2.1 7001 typ host tcptype passive',
  ].map((candidate) => ({ candidate, sdpMLineIndex: 0 }));
  const offer = await relayedOffer({ command: 'offer', sdp: { type: 'offer', sdp: SDP }, candidates }, ways);
  t.teardown(() => offer.relay.close());
  t.deepEqual(offer.description.candidates, [
    { candidate: `candidate:1 1 UDP 1 127.0.0.1 ${offer.relay.port} typ host`, sdpMLineIndex: 0 },
  ]);
  await t.throwsAsync(relayedSdp(SDP.replaceAll('UDP 2', 'TCP 2'), ways), { message: /no candidate over UDP/ });
});
