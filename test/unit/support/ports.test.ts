import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import test from 'ava';
import { portsInUse, unusedPorts } from '../../../deploy/cluster/ports.ts';

test('a port is in use from when a socket has it until it is closed', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  const other = createServer().listen(0, '127.0.0.2');
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await Promise.all([server, other, socket].map((one) => once(one, 'listening')));
  const ports = [server.address() as AddressInfo, other.address() as AddressInfo, socket.address()].map(
    ({ port }) => port,
  );
  const used = portsInUse();
  t.deepEqual(
    ports.map((port) => used.has(port)),
    [true, true, true],
  );
  t.throws(() => unusedPorts(1, () => ports[0]), { message: '1 free ports are wanted, 0 were found' });
  await Promise.all([server, other, socket].map((one) => new Promise<void>((resolve) => one.close(() => resolve()))));
  t.deepEqual(unusedPorts(3, () => ports[Math.floor(Math.random() * 3)]).sort(), ports.sort());
});
