import Fastify from 'fastify';
import type { AddressInfo } from 'node:net';

/** The least that an API can do, as a yardstick for this machine. Says its port on standard output. */
const app = Fastify();
app.get('/', async () => ({ message: 'OK', response: { version: '0.0.0' }, statusCode: 200 }));
await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${(app.server.address() as AddressInfo).port}\n`);
