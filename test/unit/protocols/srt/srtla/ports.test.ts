import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { ListenError } from '../../../../../src/core/listen-error.ts';
import { SrtlaPorts } from '../../../../../src/protocols/srt/srtla/ports.ts';
import { freePorts } from '../../../../support/network/ports.ts';

const log = pino({ level: 'silent' });
const DATA = Buffer.alloc(204, 1);

async function bound(t: ExecutionContext, address: string): Promise<Socket> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4').bind(0, address);
  t.teardown(() => socket.close());
  await once(socket, 'listening');
  return socket;
}

for (const host of ['127.0.0.1', '::1']) {
  test(`packets pass to the SRT port and back at ${host}, and only from there`, async (t) => {
    const [srt, link, stranger] = await Promise.all([bound(t, host), bound(t, host), bound(t, host)]);
    const [port = 0] = freePorts(1);
    const target = { address: host, port: srt.address().port };
    const ports = await SrtlaPorts.open({ places: [{ host }], ports: [port], target, log });
    t.teardown(() => ports.close());
    const ask = async (packet: Buffer): Promise<Buffer> => {
      link.send(packet, port, host);
      return (await once(link, 'message'))[0] as Buffer;
    };
    const full = await ask(Buffer.concat([Buffer.from('9200', 'hex'), Buffer.alloc(256)]));
    t.deepEqual(await ask(full), Buffer.from('9202', 'hex'));
    link.send(DATA, port, host);
    const [data, from] = (await once(srt, 'message')) as [Buffer, { address: string; port: number }];
    t.deepEqual(data, DATA);
    t.deepEqual(ports.receiver.senderAt(from), { address: host, port: link.address().port });
    stranger.send(Buffer.concat([Buffer.from('8005', 'hex'), Buffer.alloc(14)]), from.port, host);
    const answer = Buffer.concat([Buffer.from('8001', 'hex'), Buffer.alloc(14)]);
    srt.send(answer, from.port, host);
    t.deepEqual((await once(link, 'message'))[0], answer);
  });
}

test('a port that is in use is an error, and none of the others stays open', async (t) => {
  const taken = await bound(t, '127.0.0.1');
  const [free = 0] = freePorts(1);
  const open = (ports: number[]) =>
    SrtlaPorts.open({ places: [{ host: '127.0.0.1' }], ports, target: { address: '127.0.0.1', port: 9 }, log });
  const error = await t.throwsAsync(open([free, taken.address().port]), { instanceOf: ListenError });
  t.like(error, { code: 'EADDRINUSE', syscall: 'bind', port: taken.address().port });
  (await open([free])).close();
});
