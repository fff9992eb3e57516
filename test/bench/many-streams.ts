import { pino } from 'pino';
import { apiRoutes } from '../../src/api/app.ts';
import { createHttpPort } from '../../src/web/http-port.ts';
import { apiOptions, sampleRegistry, TOKEN } from '../support/api/api.ts';
import { audioTrack, videoTrack } from '../support/media/packets.ts';

/** The management API over so many live streams that nobody sends to. Says its port on standard output. */
const registry = sampleRegistry();
const application = registry.vhost('default').application('app');
for (let i = 0; i < Number(process.argv[2]); i++) {
  const name = `live${i}`;
  const input = application.publish(name, { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  const tracks = [videoTrack(), audioTrack()];
  input.setTracks(tracks);
  application.addOutput(input, name).setTracks(tracks);
}
const port = createHttpPort({ log: pino({ level: 'silent' }) });
await port.app.register(apiRoutes(await apiOptions({ accessToken: TOKEN }, registry)));
process.stdout.write(`${await port.listen(['127.0.0.1'], 0)}\n`);
