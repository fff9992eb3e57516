import { spawn } from 'node:child_process';
import test from 'ava';
import { Hosts, type Host } from '../support/network/hosts.ts';
import { Kiln } from '../support/server/kiln.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { until } from '../support/time/until.ts';

/** Keep-alive takes 25 s, and what is unacknowledged 45 s. */
const GONE_MS = 60_000;
/** Of a few frames. */
const FRAMES_BYTES = 2000;

(Hosts.possible ? test : test.skip)(
  'the stream of a publisher that vanishes is gone within a minute, also while an answer to it is unacknowledged',
  async (t) => {
    t.timeout(180_000);
    const hosts = Hosts.open(t, 2);
    const { address } = hosts.here;
    const kiln = await Kiln.start({ ip: `<IP>127.0.0.1</IP><IP>${address}</IP>` });
    t.teardown(() => kiln.stop());
    const [first, second] = hosts.all as [Host, Host];
    const publish = (host: Host, stream: string, ...pings: 'pings'[]) => {
      const [command = '', ...args] = [...host.command, process.execPath, 'test/support/rtmp/picture-child.ts'];
      const child = spawn(command, [...args, address, String(kiln.ports.rtmp), stream, ...pings], {
        stdio: 'inherit',
      });
      t.teardown(() => child.kill('SIGKILL'));
    };
    publish(first, 'answered', 'pings');
    publish(second, 'quiet');
    for (const stream of ['answered', 'quiet']) await kiln.liveStream(stream);
    for (const host of [first, second]) hosts.deafen(host);
    const received = await bytesIn(kiln, 'answered');
    // what comes now is answered, and no answer arrives
    await until('more has come', async () => (await bytesIn(kiln, 'answered')) > received + FRAMES_BYTES);
    for (const host of [first, second]) hosts.cut(host);
    for (const stream of ['answered', 'quiet']) {
      const publish = () => RtmpClient.publish(stream, { port: kiln.ports.rtmp }).catch(() => undefined);
      const again = await until(`${stream} can be published again`, publish, GONE_MS);
      t.false(again.socket.closed);
      again.close();
    }
  },
);

async function bytesIn(kiln: Kiln, stream: string): Promise<number> {
  const { body } = await kiln.api<{ totalBytesIn: number }>(
    `/v1/stats/current/vhosts/default/apps/app/streams/${stream}`,
  );
  return body.response.totalBytesIn;
}
