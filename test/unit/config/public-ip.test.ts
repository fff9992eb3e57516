import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv4 } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { askStun, bindingRequest, mappedAddress } from '../../../src/config/stun.ts';
import { load, serverXml } from './support.ts';

const transaction = Buffer.from('b7e7a701bc34d686fa87dfae', 'hex');

/** The sample IPv4 response of RFC 5769 section 2.2: XOR-MAPPED-ADDRESS 192.0.2.1 port 32853. */
const response = Buffer.from(
  '0101003c2112a442b7e7a701bc34d686fa87dfae' +
    '8022000b7465737420766563746f7220' +
    '002000080001a147e112a643' +
    '000800142b91f599fd9e90c38c7489f92af9ba53f06be7d7' +
    '80280004c07d4c96',
  'hex',
);

test('a STUN binding request is written', (t) => {
  t.is(bindingRequest(transaction).toString('hex'), '000100002112a442b7e7a701bc34d686fa87dfae');
});

test('the mapped address of a response', (t) => {
  t.is(mappedAddress(response, transaction), '192.0.2.1');
  const plain = Buffer.from('0101000c2112a442b7e7a701bc34d686fa87dfae0001000800010050c0000207', 'hex');
  t.is(mappedAddress(plain, transaction), '192.0.2.7');
});

test('other messages of STUN servers have no address', (t) => {
  t.is(mappedAddress(bindingRequest(transaction), transaction), undefined);
  t.is(mappedAddress(response, Buffer.alloc(12)), undefined);
  for (let length = 0; length < response.length; length++) {
    t.is(mappedAddress(response.subarray(0, length), transaction), undefined);
  }
  const short = Buffer.from('010100082112a442b7e7a701bc34d686fa87dfae00200004000100aa', 'hex');
  t.is(mappedAddress(short, transaction), undefined);
});

type Answer = (socket: Socket, request: Buffer, port: number) => void;

async function stunServer(t: ExecutionContext, answer: Answer): Promise<number> {
  const socket = createSocket('udp4');
  socket.on('message', (request, { port }) => answer(socket, request, port));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => socket.close());
  return socket.address().port;
}

const relayAs =
  '<Publishers><WebRTC><Signalling><Port>3333</Port></Signalling><IceCandidates>' +
  '<IceCandidate>${PublicIP}:10000/udp</IceCandidate></IceCandidates></WebRTC></Publishers>';

test('${PublicIP} is what the STUN server says', async (t) => {
  const port = await stunServer(t, (socket, request, to) => {
    const reply = Buffer.from(response);
    request.copy(reply, 8, 8, 20);
    socket.send('noise', to, '127.0.0.1');
    socket.send(reply, to, '127.0.0.1');
  });
  const server = `<StunServer>127.0.0.1:${port}</StunServer>`;
  const { config, warnings } = await load(t, serverXml({ bind: relayAs, server }));
  t.is(config.bind.publishers.webrtc?.iceCandidates.iceCandidate[0]?.address, '192.0.2.1');
  t.deepEqual(config.stunServer, { host: '127.0.0.1', port });
  t.deepEqual(warnings, []);
});

test('the public IP macro without a STUN server is an address of this machine', async (t) => {
  const { config } = await load(t, serverXml({ bind: relayAs }));
  t.true(isIPv4(config.bind.publishers.webrtc?.iceCandidates.iceCandidate[0]?.address ?? ''));
});

test('a STUN server that does not answer', async (t) => {
  const port = await stunServer(t, () => {});
  await t.throwsAsync(askStun({ host: '127.0.0.1', port }, 50), { message: 'no answer in 50 ms' });
  const server = '<StunServer>kiln.invalid:1</StunServer>';
  const { config, warnings } = await load(t, serverXml({ bind: relayAs, server }));
  t.true(isIPv4(config.bind.publishers.webrtc?.iceCandidates.iceCandidate[0]?.address ?? ''));
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /^StunServer kiln\.invalid:1: .*\$\{PublicIP\} is/);
});

test('no STUN server is asked where the macro is not used', async (t) => {
  let asked = 0;
  const port = await stunServer(t, () => asked++);
  await load(t, serverXml({ server: `<StunServer>127.0.0.1:${port}</StunServer>` }));
  t.is(asked, 0);
});
