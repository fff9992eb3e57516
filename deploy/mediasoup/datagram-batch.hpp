// Part of the worker that deploy/build-mediasoup-worker builds: include/handles/DatagramBatch.hpp.

#ifndef KILN_DATAGRAM_BATCH_HPP
#define KILN_DATAGRAM_BATCH_HPP

#include "common.hpp"
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <uv.h>
#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

class UdpSocketHandle;

/**
 * Holds the datagrams that a UDP socket is to send until the end of the turn of the event loop, and sends those to one peer by one
 * system call: the kernel cuts it into datagrams of one size (UDP_SEGMENT, Linux 4.18; https://docs.kernel.org/networking/segmentation-offloads.html).
 * A frame of video is one such call for each viewer, instead of one for each packet. Datagrams to one peer stay in their order.
 */
class DatagramBatch
{
public:
	using Callback = const std::function<void(bool sent)>;

public:
	DatagramBatch(UdpSocketHandle& socket, uv_udp_t* uvHandle);
	DatagramBatch(const DatagramBatch&)            = delete;
	DatagramBatch& operator=(const DatagramBatch&) = delete;

public:
	/**
	 * Copies the datagram.
	 * @param cb called when it was sent or could not be, and deleted; may be null
	 * @return false if it is too large to be held, or the kernel cannot do it: nothing was done
	 */
	bool Add(const uint8_t* data, size_t len, const struct sockaddr* addr, Callback* cb);
	/** Sends what is held. */
	void Flush();
	/** Sends what is held. Nothing may be added any more. */
	void Close();

private:
	/** Address, scope and port, as bytes. */
	using PeerKey = std::array<uint8_t, 22>;

	struct Datagram
	{
		size_t offset;
		size_t len;
		Callback* cb;
		/** Index of the next one to the same peer, or -1. */
		int32_t next;
	};

	struct Peer
	{
		PeerKey key;
		struct sockaddr_storage addr;
		int32_t first;
		int32_t last;
	};

	/** What is held in a turn of the event loop. */
	struct Held
	{
		/** Bytes of the datagrams. */
		std::unique_ptr<uint8_t[]> store;
		size_t storeLen{ 0 };
		std::vector<Datagram> datagrams;
		std::vector<Peer> peers;
		absl::flat_hash_map<PeerKey, int32_t> peerIndexes;

		void Clear();
	};

private:
	static PeerKey KeyOf(const struct sockaddr* addr);
	void SendToPeer(const Held& held, const Peer& peer);
	bool SendRun(const Held& held, const Peer& peer, int32_t first, size_t count);

private:
	UdpSocketHandle& socket;
	uv_udp_t* uvHandle;
	/** Runs before the loop waits; active only while something is held. */
	uv_prepare_t* uvPrepare{ nullptr };
	Held held;
	bool isFlushing{ false };
	/** Peers whose route does not segment: a device without checksums, IPsec, an MTU below the size of a segment. */
	absl::flat_hash_set<PeerKey> unsegmented;
};

#endif
