# Untried: no machine with Homebrew was at hand. Before it is used, the address must become that of the releases, and the digests
# those of their `.sha256` files.
class GimletAgent < Formula
  desc "Coding agent for local models, in one program"
  homepage "https://gimlet.invalid"
  version "0.1.0"
  license any_of: ["Apache-2.0", "MIT"]

  depends_on :linux

  on_linux do
    on_intel do
      url "https://gimlet.invalid/releases/download/v0.1.0/gimlet-0.1.0-x86_64-linux.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
    on_arm do
      url "https://gimlet.invalid/releases/download/v0.1.0/gimlet-0.1.0-aarch64-linux.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
  end

  def install
    bin.install "gimlet", "gimlet-jail"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/gimlet.bash" => "gimlet"
    zsh_completion.install "completions/gimlet.zsh" => "_gimlet"
    fish_completion.install "completions/gimlet.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/gimlet --version")
    assert_equal "45\n", shell_output("#{bin}/gimlet python -c 'print(sum(range(10)))'")
  end
end
