import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { parseAllDocuments } from 'yaml';
import { findProgram } from '../../../deploy/cluster/program.ts';
import { configOf, icePorts, openPorts, read, ROOT } from '../../unit/deploy/support.ts';
import { typeFaults, type Manifest } from '../../support/deploy/kubernetes-types.ts';

const run = promisify(execFile);
const CHART = join(ROOT, 'deploy/helm/kiln');
const EVERYTHING = [
  ...['serviceMonitor', 'prometheusRule', 'dashboards', 'autoscaler'].map((part) => `${part}.enabled=true`),
  'hostNetwork=true',
  'redis.url=redis://redis:6379',
  'turn.address=turn.example.com:3478',
  'iceAddress=192.0.2.1',
  'forwardedNetworks=10.0.0.0/8',
  'image.pullSecrets={registry}',
  'services.http.type=ClusterIP',
  'persistence.storageClass=fast',
  'podAnnotations.a=b',
  'nodeSelector.media=yes',
  'ports.ice.last=10003',
  'ports.api=18081',
  'drain.timeout=120',
].flatMap((value) => ['--set', value]);

interface Field {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef?: object };
}

interface StatefulSet extends Manifest {
  readonly spec: {
    readonly replicas?: number;
    readonly template: {
      readonly spec: {
        readonly hostNetwork?: boolean;
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly [
          {
            readonly args?: readonly string[];
            readonly env: readonly Field[];
            readonly ports: readonly { name: string; containerPort: number; hostPort?: number; protocol?: string }[];
            readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
          },
        ];
      };
    };
  };
}

// Skipped, and shown as such, where deploy/setup has no Helm: it is to be had for x86-64 alone.
const ofHelm = ((): typeof test | typeof test.skip => {
  try {
    findProgram('helm');
    return test;
  } catch {
    return test.skip;
  }
})();

const parse = (yaml: string): Manifest[] =>
  parseAllDocuments(yaml)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);

async function template(...args: string[]): Promise<Manifest[]> {
  const { stdout } = await run(findProgram('helm'), ['template', 'kiln', CHART, ...args], { maxBuffer: 8_000_000 });
  return parse(stdout);
}

const one = <T extends Manifest>(manifests: readonly Manifest[], kind: string, name = 'kiln'): T =>
  manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name) as T;
const ofKubernetes = ({ apiVersion }: Manifest) => !apiVersion.startsWith('monitoring.coreos.com/');

ofHelm('Helm and the types of Kubernetes take the chart, and kustomize and they the manifests', async (t) => {
  await t.notThrowsAsync(run(findProgram('helm'), ['lint', '--strict', CHART]));
  const [plain, everything, { stdout }] = await Promise.all([
    template(),
    template(...EVERYTHING, '--set-file', `config=${join(ROOT, 'config/cluster.xml')}`),
    run(findProgram('kubectl'), ['kustomize', join(ROOT, 'deploy/kubernetes')]),
  ]);
  t.is(plain.length, 8);
  t.is(everything.length, 13);
  const kustomized = parse(stdout);
  t.deepEqual(await typeFaults([...plain, ...everything, ...kustomized].filter(ofKubernetes)), []);
  const set = one<StatefulSet>(plain, 'StatefulSet');
  const faults = await typeFaults([{ ...set, spec: { ...set.spec, replica: 3 } } as Manifest]);
  t.regex(faults.join('\n'), /"replica"' does not exist in type 'StatefulSetSpec'/, 'the types notice faults');
});

/** A manifest without what differs by the way it is made: labels, the image, defaults that are named, names of media ports. */
function essence(manifest: Manifest): unknown {
  const left = new Set(['labels', 'image', 'imagePullPolicy', 'annotations', 'selector', 'matchLabels', 'optional']);
  return JSON.parse(JSON.stringify(manifest), (key, value: unknown) => {
    if (left.has(key)) return undefined;
    if (key === 'env') return (value as Field[]).filter(({ value: given = '' }) => !/^\d+(?:-\d+)?$/.test(given));
    if (key === 'ports')
      return (value as { name: string }[])
        .map(({ name, ...port }) => JSON.stringify({ name: name.replace(/^ice-.*/, 'ice'), ...port }))
        .toSorted();
    return value;
  });
}

ofHelm('a chart without values is what the manifests are', async (t) => {
  const chart = await template('--set', 'autoscaler.enabled=true', '--set', 'turn.address=turn.example.com:3478');
  const manifests = ['statefulset', 'services', 'autoscaler', 'disruption-budget'].flatMap((file) =>
    parseAllDocuments(read(`deploy/kubernetes/${file}.yaml`), { merge: true }).map((made) => made.toJS() as Manifest),
  );
  t.is(chart.length, manifests.length);
  for (const manifest of manifests)
    t.deepEqual(essence(one(chart, manifest.kind, manifest.metadata.name)), essence(manifest), manifest.metadata.name);
});

ofHelm('a pod of the chart has what config/cluster.xml asks for, whatever its values', async (t) => {
  for (const args of [[], EVERYTHING]) {
    const manifests = await template(...args);
    const { template: pod } = one<StatefulSet>(manifests, 'StatefulSet').spec;
    const [container] = pod.spec.containers;
    const env = Object.fromEntries(
      container.env.map(({ name, value, valueFrom }) => [
        name,
        value ?? (valueFrom?.secretKeyRef === undefined ? '10.0.0.1' : 'redis://of.a.secret'),
      ]),
    );
    const config = await configOf(t, env);
    const ports = (media: boolean) =>
      container.ports
        .filter(({ hostPort }) => (hostPort !== undefined) === media)
        .map(({ containerPort, protocol = 'TCP' }) => `${containerPort}/${protocol.toLowerCase()}`)
        .toSorted();
    t.deepEqual(ports(false), openPorts(config).toSorted());
    t.deepEqual(ports(true), icePorts(config).toSorted());
    const [, notice] = container.lifecycle.preStop.exec.command;
    const drain = (config.cluster?.node.drainTimeout ?? Infinity) / 1000;
    t.is(pod.spec.terminationGracePeriodSeconds, Number(notice) + drain + 25);
    t.is(pod.spec.hostNetwork ?? false, args.length > 0);
  }
});

ofHelm('a Server.xml of its own is what the pods run', async (t) => {
  const args = ['--set-file', `config=${join(ROOT, 'config/cluster.xml')}`];
  const [own, none] = await Promise.all([template(...args), template()]);
  const map = one<Manifest & { data: Record<string, string> }>(own, 'ConfigMap');
  t.is(map.data['Server.xml']?.trim(), read('config/cluster.xml').trim());
  const [container] = one<StatefulSet>(own, 'StatefulSet').spec.template.spec.containers;
  t.deepEqual(container.args, ['--config', '/etc/kiln/Server.xml']);
  t.is(one<StatefulSet>(none, 'StatefulSet').spec.template.spec.containers[0].args, undefined);
});

ofHelm('the operator of Prometheus finds the nodes, and Grafana its dashboards', async (t) => {
  const manifests = await template(...EVERYTHING);
  const monitor = one<Manifest & { spec: { selector: { matchLabels: object }; endpoints: object[] } }>(
    manifests,
    'ServiceMonitor',
  );
  const found = manifests.filter(
    ({ kind, metadata: { labels } }) =>
      kind === 'Service' &&
      Object.entries(monitor.spec.selector.matchLabels).every(([name, value]) => labels?.[name] === value),
  );
  t.deepEqual(
    found.map(({ metadata }) => metadata.name),
    ['kiln-api'],
  );
  t.like(found[0], { spec: { ports: [{ name: 'api', port: 18_081 }] } });
  t.like(monitor.spec.endpoints[0], {
    port: 'api',
    path: '/metrics',
    basicAuth: { username: { name: 'kiln-metrics' } },
  });
  const rule = one<Manifest & { spec: object }>(manifests, 'PrometheusRule');
  t.deepEqual(rule.spec, parseAllDocuments(read('grafana/prometheus/kiln.rules.yml'))[0]?.toJS());
  const { data } = one<Manifest & { data: Record<string, string> }>(manifests, 'ConfigMap', 'kiln-dashboards');
  t.is(Object.keys(data).length, 8);
  t.deepEqual(JSON.parse(data['kiln-overview.json'] ?? ''), JSON.parse(read('grafana/dashboards/overview.json')));
});

ofHelm('a value that the chart does not know ends the installation', async (t) => {
  for (const value of ['redis.uri=redis://redis', 'ports.rtmp=0', 'replicas=none'])
    await t.throwsAsync(template('--set', value), { message: /values don't meet the specifications/ }, value);
});
